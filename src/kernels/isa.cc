// The table of tables, and the choice made once at start. A new ISA is one row here.
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/os.h"
#include "kernels/isa_tables.h"

namespace coppice::core {
namespace {

struct Isa {
  const Kernels* kernels;
  bool (*runs_on)(const CpuFeatures& cpu);
};

#ifdef COPPICE_X86_KERNELS
bool has_avx2(const CpuFeatures& cpu) { return cpu.avx2 && cpu.fma && cpu.f16c; }
bool has_avx512(const CpuFeatures& cpu) {
  return has_avx2(cpu) && cpu.avx512f && cpu.avx512bw && cpu.avx512dq && cpu.avx512vl;
}
bool has_avx512vnni(const CpuFeatures& cpu) { return has_avx512(cpu) && cpu.avx512_vnni; }
#endif

// The plainest first, the fastest last.
const Isa kIsas[] = {
    {&kScalarKernels, [](const CpuFeatures&) { return true; }},
#ifdef COPPICE_X86_KERNELS
    {&kAvx2Kernels, has_avx2},
    {&kAvxVnniKernels, [](const CpuFeatures& cpu) { return has_avx2(cpu) && cpu.avx_vnni; }},
    {&kAvx512Kernels, has_avx512},
    {&kAvx512VnniKernels, has_avx512vnni},
    {&kAmxKernels,
     [](const CpuFeatures& cpu) { return has_avx512vnni(cpu) && cpu.amx_int8 && allow_tile_registers(); }},
#endif
#ifdef COPPICE_NEON_KERNELS
    {&kNeonKernels, [](const CpuFeatures& cpu) { return cpu.neon; }},
    {&kNeonDotKernels, [](const CpuFeatures& cpu) { return cpu.neon && cpu.dotprod; }},
#endif
};
constexpr std::size_t kCount = std::size(kIsas);

std::atomic<const Kernels*> chosen{nullptr};

const Kernels* find_usable(std::string_view name) {
  for (const Isa& isa : kIsas)
    if (isa.kernels->name == name && usable(*isa.kernels)) return isa.kernels;
  return nullptr;
}

const Kernels* choose() {
  const Kernels* best = nullptr;
  for (const Isa& isa : kIsas)
    if (usable(*isa.kernels)) best = isa.kernels;
  const char* wanted = std::getenv("COPPICE_ISA");
  if (!wanted || !*wanted) return best;
  if (const Kernels* named = find_usable(wanted)) return named;
  std::string names;
  for (const Isa& isa : kIsas)
    if (usable(*isa.kernels)) names.append(names.empty() ? "" : ", ").append(isa.kernels->name);
  // To stderr: a command's answer, or its JSON, goes to stdout.
  spdlog::logger log("coppice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
  log.warn("COPPICE_ISA is '{}', which this machine does not have (it has {}): using {}", wanted, names,
           best->name);
  return best;
}

}  // namespace

std::span<const Kernels* const> all_kernels() {
  static const auto tables = [] {
    std::array<const Kernels*, kCount> list{};
    for (std::size_t i = 0; i < kCount; ++i) list[i] = kIsas[i].kernels;
    return list;
  }();
  return tables;
}

bool usable(const Kernels& kernels) {
  for (const Isa& isa : kIsas)
    if (isa.kernels == &kernels) return isa.runs_on(cpu_features());
  return false;
}

const Kernels& kernels() {
  const Kernels* now = chosen.load(std::memory_order_acquire);
  if (now) return *now;
  const Kernels* best = choose();
  // Whoever comes first decides.
  return chosen.compare_exchange_strong(now, best) ? *best : *now;
}

bool force_kernels(std::string_view name) {
  const Kernels* table = find_usable(name);
  if (table) chosen.store(table, std::memory_order_release);
  return table != nullptr;
}

WeightsView view_of(const PackedMatrix& matrix) {
  return {matrix.kind, matrix.inputs, matrix.data.data(), matrix.group_bytes(), matrix.group_stride()};
}

KvView view_of(const KvLayout& layout) {
  return {layout.type, layout.kv_heads, layout.heads, layout.head_dim, layout.key_bytes()};
}

}  // namespace coppice::core
