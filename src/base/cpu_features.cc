// What the CPU can do and the operating system lets us use: wide registers count only where the system saves
// them.
#include "base/os.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include <cstring>

namespace coppice::core {
namespace {

#if defined(__x86_64__)

struct Leaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Leaf leaf(unsigned number, unsigned sub = 0) {
  Leaf result;
  if (__get_cpuid_count(number, sub, &result.eax, &result.ebx, &result.ecx, &result.edx) == 0) return Leaf{};
  return result;
}

constexpr bool bit(unsigned word, int index) { return ((word >> index) & 1u) != 0; }

std::uint64_t extended_control() {
  unsigned low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32) | low;
}

std::string brand() {
  if (leaf(0x80000000u).eax < 0x80000004u) return "x86-64";
  char text[49] = {};
  for (unsigned part = 0; part < 3; ++part) {
    const Leaf words = leaf(0x80000002u + part);
    std::memcpy(text + 16 * part, &words, 16);
  }
  std::string name = text;
  const std::size_t first = name.find_first_not_of(' ');
  const std::size_t last = name.find_last_not_of(' ');
  return first == std::string::npos ? "x86-64" : name.substr(first, last - first + 1);
}

CpuFeatures detect() {
  CpuFeatures cpu;
  cpu.name = brand();
  const Leaf basic = leaf(1);
  if (!bit(basic.ecx, 27)) return cpu;  // OSXSAVE: without it the system saves no wide registers
  const std::uint64_t saved = extended_control();
  const bool ymm = (saved & 0x6) == 0x6;           // XMM and the upper halves of YMM
  const bool zmm = ymm && (saved & 0xe0) == 0xe0;  // masks, upper halves of ZMM0-15, ZMM16-31
  const bool tiles = (saved & 0x60000) == 0x60000;
  const Leaf seven = leaf(7);
  const Leaf seven_one = seven.eax >= 1 ? leaf(7, 1) : Leaf{};
  const bool avx = ymm && bit(basic.ecx, 28);
  cpu.avx2 = avx && bit(seven.ebx, 5);
  cpu.fma = avx && bit(basic.ecx, 12);
  cpu.f16c = avx && bit(basic.ecx, 29);
  cpu.avx_vnni = cpu.avx2 && bit(seven_one.eax, 4);
  cpu.avx512f = zmm && bit(seven.ebx, 16);
  cpu.avx512dq = cpu.avx512f && bit(seven.ebx, 17);
  cpu.avx512bw = cpu.avx512f && bit(seven.ebx, 30);
  cpu.avx512vl = cpu.avx512f && bit(seven.ebx, 31);
  cpu.avx512_vnni = cpu.avx512f && bit(seven.ecx, 11);
  // A process must also ask for the tile registers before it uses them: allow_tile_registers().
  cpu.amx_int8 = tiles && bit(seven.edx, 24) && bit(seven.edx, 25);
  return cpu;
}

#elif defined(__aarch64__)

CpuFeatures detect() {
  CpuFeatures cpu;
  cpu.name = "AArch64";
  cpu.neon = true;
  cpu.fma = true;
#if defined(__linux__)
  cpu.dotprod = (::getauxval(AT_HWCAP) & (1ul << 20)) != 0;  // HWCAP_ASIMDDP
#elif defined(__ARM_FEATURE_DOTPROD)
  cpu.dotprod = true;  // what the compiler takes for granted here
#endif
  return cpu;
}

#else

CpuFeatures detect() {
  CpuFeatures cpu;
  cpu.name = "unknown";
  return cpu;
}

#endif

// The word that holds rounding, flush-to-zero and exception masks.
std::uint64_t float_control() {
#if defined(__x86_64__)
  return _mm_getcsr();
#elif defined(__aarch64__)
  std::uint64_t word;
  __asm__ volatile("mrs %0, fpcr" : "=r"(word));
  return word;
#else
  return 0;
#endif
}

void set_float_control([[maybe_unused]] std::uint64_t word) {
#if defined(__x86_64__)
  _mm_setcsr(static_cast<unsigned>(word));
#elif defined(__aarch64__)
  __asm__ volatile("msr fpcr, %0" : : "r"(word) : "memory");
#endif
}

#if defined(__x86_64__)
constexpr std::uint64_t kDefaultFloatControl =
    0x1f80;  // all exceptions masked, nearest even, no flush to zero
#else
constexpr std::uint64_t kDefaultFloatControl = 0;
#endif

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = detect();
  return features;
}

DefaultFloatScope::DefaultFloatScope() : saved_(float_control()) { set_float_control(kDefaultFloatControl); }

DefaultFloatScope::~DefaultFloatScope() { set_float_control(saved_); }

}  // namespace coppice::core
