// Every kernel by itself, on numbers made up: how near it comes to what this machine can do.
#include <fmt/core.h>

#include <algorithm>

#include "api/impl.h"
#include "api/made_up.h"
#include "api/measure.h"
#include "base/check.h"
#include "base/os.h"

namespace coppice {
namespace {

struct KindName {
  const char* name;
  core::PackedKind kind;
};
using core::PackedKind;
constexpr KindName kKinds[] = {{"q4", PackedKind::q4},
                               {"q4_offset", PackedKind::q4_offset},
                               {"q8", PackedKind::q8},
                               {"q5", PackedKind::q5},
                               {"q5_offset", PackedKind::q5_offset},
                               {"q4_table", PackedKind::q4_table},
                               {"q4_power", PackedKind::q4_power},
                               {"q2_super", PackedKind::q2_super},
                               {"q3_super", PackedKind::q3_super},
                               {"q4_super", PackedKind::q4_super},
                               {"q5_super", PackedKind::q5_super},
                               {"q6_super", PackedKind::q6_super},
                               {"q4_table_super", PackedKind::q4_table_super},
                               {"f16", PackedKind::f16},
                               {"bf16", PackedKind::bf16},
                               {"f32", PackedKind::f32}};
static_assert(std::size(kKinds) == core::kPackedKinds);
struct CacheName {
  const char* name;
  core::CacheType type;
};
constexpr CacheName kCaches[] = {
    {"f32", core::CacheType::f32}, {"f16", core::CacheType::f16}, {"q8_0", core::CacheType::q8_0}};

class KernelBench {
 public:
  explicit KernelBench(const KernelBenchOptions& options)
      : options_(options),
        pool_(options.threads > 0 ? options.threads : core::usable_cores()),
        kernels_(core::kernels()),
        limits_(pool_, kernels_) {}
  Result<KernelReport> run(std::span<const KindName> kinds);

 private:
  Status matmuls(const KindName& kind);
  Status attention(const CacheName& cache, int positions);
  Status attention_rows(const CacheName& cache, int positions, const core::KvLayout& layout,
                        std::span<const std::byte> memory);
  Status small_ones();
  Status one_small(const char* name, int count, double bytes, const std::function<void()>& body);
  void add(KernelTiming timing, const Timed& read, const Timed& timed, const Spread& peak);
  Stretch next() {
    const Stretch stretch{static_cast<double>(part_) / parts_, static_cast<double>(part_ + 1) / parts_};
    ++part_;
    return stretch;
  }

  const KernelBenchOptions& options_;
  core::ThreadPool pool_;
  const core::Kernels& kernels_;
  Limits limits_;
  int part_ = 0, parts_ = 1;
  KernelReport report_;
};

void KernelBench::add(KernelTiming timing, const Timed& read, const Timed& timed, const Spread& peak) {
  timing.seconds = spread_of(timed.seconds);
  timing.of_read = divided(read.seconds, timed.seconds);
  if (timing.multiply_adds > 0) timing.of_peak = divided(timing.multiply_adds / peak.median, timed.seconds);
  report_.timings.push_back(std::move(timing));
}

// All matrices one after the other, as a pass takes them, with a barrier after each.
Status KernelBench::matmuls(const KindName& kind) {
  COPPICE_TRY(const Matrices matrices, make_matrices(options_, kind.kind));
  const int most = *std::max_element(options_.rows.begin(), options_.rows.end());
  const int q = options_.heads * options_.head_dim,
            widest = core::whole_units(kind.kind, std::max({options_.hidden, q, options_.feed_forward}));
  Activations rows(most, widest, widest);
  std::vector<std::span<const std::byte>> bytes;
  for (const core::PackedMatrix& matrix : matrices.all)
    bytes.emplace_back(matrix.data.data(), matrix.bytes());
  std::vector<Timed> timed;
  timed.push_back({[&] {
    limits_.read(bytes);
    return Status();
  }});
  for (const int count : options_.rows)
    timed.push_back({[&, count] {
      pool_.run([&](int thread) {
        for (const core::PackedMatrix& matrix : matrices.all) {
          core::MatmulTask task;
          task.weights = &matrix;
          task.x = rows.x.data();
          task.q = rows.rows(matrix.inputs);
          task.y = rows.y.data(), task.y_stride = rows.stride, task.rows = count;
          const core::Span1 part = core::share(matrix.groups(), thread, pool_.size());
          if (part.begin < part.end) kernels_.matmul(task, part.begin, part.end);
          pool_.barrier();
        }
      });
      return Status();
    }});
  COPPICE_TRY_STATUS(
      alternate(timed, options_.repeats, options_.progress, fmt::format("matmul {}", kind.name), next()));
  const bool quantised = matrices.all.front().quantised();
  for (std::size_t i = 0; i < options_.rows.size(); ++i) {
    KernelTiming timing;
    timing.kernel = "matmul";
    timing.variant = kind.name;
    timing.rows = options_.rows[i];
    timing.bytes = static_cast<double>(matrices.memory.size());
    timing.multiply_adds = matrices.multiply_adds * timing.rows;
    add(timing, timed[0], timed[i + 1], quantised ? report_.machine.int8_peak : report_.machine.f32_peak);
  }
  return {};
}

// Rows over the same committed positions, in every layer: threads share the heads of the rows.
Status KernelBench::attention(const CacheName& cache, int positions) {
  const core::KvLayout layout{cache.type, options_.kv_heads, options_.heads, options_.head_dim};
  const auto blocks =
      static_cast<std::size_t>((positions + core::kBlockPositions - 1) / core::kBlockPositions);
  const std::size_t bytes = layout.block_bytes() * blocks * static_cast<std::size_t>(options_.layers);
  COPPICE_TRY(core::Buffer memory, core::Buffer::make(bytes));
  fill_moderate(memory.data(), bytes);
  return attention_rows(cache, positions, layout, {memory.data(), bytes});
}

Status KernelBench::attention_rows(const CacheName& cache, int positions, const core::KvLayout& layout,
                                   std::span<const std::byte> memory) {
  constexpr int kMostRows = 8;  // a tree
  const std::size_t width =
      static_cast<std::size_t>(layout.heads) * static_cast<std::size_t>(layout.head_dim);
  const std::size_t layer_bytes = memory.size() / static_cast<std::size_t>(options_.layers);
  std::vector<std::int32_t> table;
  for (std::size_t i = 0; i < layer_bytes / layout.block_bytes(); ++i)
    table.push_back(static_cast<std::int32_t>(i));
  std::vector<float> q(width * kMostRows, 0.01f), out(q.size());
  const std::size_t floats = (core::attention_workspace(layout) + 15) / 16 * 16;
  std::vector<float> workspace(floats * static_cast<std::size_t>(pool_.size()));
  const auto pass = [&](int rows) {
    pool_.run([&](int thread) {
      const core::Span1 mine = core::share(rows * layout.heads, thread, pool_.size());
      core::AttentionRow seen[kMostRows];
      for (int layer = 0; layer < options_.layers; ++layer) {
        for (int i = 0; i < rows; ++i) {
          core::AttentionRow& row = seen[i];
          row.q = q.data() + static_cast<std::size_t>(i) * width;
          row.out = out.data() + static_cast<std::size_t>(i) * width;
          row.position = positions - 1, row.committed = positions;
          row.table = table.data(), row.block_stride = layout.block_bytes();
          row.blocks = memory.data() + layer_bytes * static_cast<std::size_t>(layer);
        }
        core::AttentionTask task;
        task.rows = seen, task.row_count = rows;
        task.query_begin = mine.begin, task.query_end = mine.end;
        task.workspace = workspace.data() + floats * static_cast<std::size_t>(thread);
        kernels_.attention(layout, task);
      }
    });
    return Status();
  };
  std::vector<std::span<const std::byte>> bytes;
  for (std::size_t at = 0; at < memory.size(); at += layer_bytes)
    bytes.push_back(memory.subspan(at, layer_bytes));
  Timed timed[] = {{[&] {
                     limits_.read(bytes);
                     return Status();
                   }},
                   {[&] { return pass(1); }},
                   {[&] { return pass(kMostRows); }}};
  COPPICE_TRY_STATUS(alternate(timed, options_.repeats, options_.progress,
                               fmt::format("attention {} {}", cache.name, positions), next()));
  for (int i = 1; i <= 2; ++i) {
    KernelTiming timing;
    timing.kernel = "attention";
    timing.variant = cache.name;
    timing.rows = i == 1 ? 1 : kMostRows;
    timing.count = positions;
    timing.bytes = static_cast<double>(memory.size());
    timing.multiply_adds = 2.0 * static_cast<double>(width) * positions * options_.layers * timing.rows;
    add(timing, timed[0], timed[i], report_.machine.f32_peak);
  }
  return {};
}

// One call on one thread, over numbers that lie in its cache. Many calls are one measurement.
Status KernelBench::one_small(const char* name, int count, double bytes, const std::function<void()>& body) {
  constexpr double kWanted = 2e-4;
  int calls = 1;
  for (;; calls *= 2) {
    const double start = core::seconds();
    for (int i = 0; i < calls; ++i) body();
    if (core::seconds() - start >= kWanted || calls >= 1 << 20) break;
  }
  std::vector<std::byte> same(static_cast<std::size_t>(bytes) / 64 * 64 + 64);
  fill_moderate(same.data(), same.size());
  volatile float sink = 0;
  const auto times = [&calls](const std::function<void()>& one) {
    return [&calls, one] {
      for (int i = 0; i < calls; ++i) one();
      return Status();
    };
  };
  Timed timed[] = {{times([&] { sink = kernels_.read_all(same.data(), same.size()); })}, {times(body)}};
  COPPICE_TRY_STATUS(alternate(timed, options_.repeats, options_.progress, name, next()));
  for (Timed& one : timed)
    for (double& seconds : one.seconds) seconds /= calls;
  KernelTiming timing;
  timing.kernel = name;
  timing.count = count;
  timing.bytes = bytes;
  add(timing, timed[0], timed[1], {});
  return {};
}

Status KernelBench::small_ones() {
  const core::Kernels& k = kernels_;
  const int hidden = options_.hidden, wide = options_.feed_forward, vocab = options_.vocab / 2 * 2;
  const int most = std::max({hidden, wide, vocab, options_.head_dim});
  std::vector<float> x(static_cast<std::size_t>(most), 0.5f), y(x.size()), z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 251) * 0.01f - 1.2f;
  std::vector<double> noise(static_cast<std::size_t>(vocab));
  Activations quantised(1, most / 32 * 32 + 32, 32);
  volatile std::int64_t sink = 0;
  const double f = sizeof(float);
  const core::NoiseKey key{1, 2, 3};
  struct Small {
    const char* name;
    int count;
    double bytes;  // read
    std::function<void()> body;
  };
  const Small all[] = {
      {"rms_norm", hidden, 2 * f * hidden, [&] { k.rms_norm(x.data(), x.data(), 1e-5f, hidden, y.data()); }},
      {"layer_norm", hidden, 3 * f * hidden,
       [&] { k.layer_norm(x.data(), x.data(), z.data(), 1e-5f, hidden, y.data()); }},
      {"quantize_row", hidden, f * hidden, [&] { sink = k.quantize_row(x.data(), quantised.rows(hidden)); }},
      {"add", hidden, 2 * f * hidden, [&] { k.add(x.data(), z.data(), hidden); }},
      {"silu_mul", wide, 2 * f * wide, [&] { k.silu_mul(x.data(), x.data(), y.data(), wide); }},
      {"gelu", wide, f * wide, [&] { k.gelu(x.data(), y.data(), wide); }},
      {"rope", options_.head_dim, 2 * f * options_.head_dim,
       [&] { k.rope(y.data(), x.data(), options_.head_dim); }},
      {"exp2", wide, f * wide, [&] { k.exp2(x.data(), y.data(), wide); }},
      {"argmax", vocab, f * vocab, [&] { sink = k.argmax(x.data(), vocab); }},
      {"gumbel", vocab, 0, [&] { k.gumbel(key, 7, 0, vocab, noise.data()); }},
      {"gumbel_bound", vocab, 0, [&] { k.gumbel_bound(key, 7, 0, vocab, y.data()); }},
  };
  for (const Small& small : all)
    COPPICE_TRY_STATUS(one_small(small.name, small.count, small.bytes, small.body));
  return {};
}

Result<KernelReport> KernelBench::run(std::span<const KindName> kinds) {
  constexpr int kSmall = 11;
  parts_ = static_cast<int>(kinds.size() + std::size(kCaches) * options_.positions.size()) + kSmall;
  COPPICE_TRY(report_.machine, limits_.speed(options_.repeats, options_.progress));
  for (const KindName& kind : kinds) COPPICE_TRY_STATUS(matmuls(kind));
  for (const CacheName& cache : kCaches) {
    if (cache.type == core::CacheType::q8_0 && options_.head_dim % core::kBlockInputs != 0) continue;
    for (const int positions : options_.positions) COPPICE_TRY_STATUS(attention(cache, positions));
  }
  COPPICE_TRY_STATUS(small_ones());
  return std::move(report_);
}

Status check(const KernelBenchOptions& o) {
  COPPICE_TRY_STATUS(check_repeats(o.repeats));
  constexpr int kWidest = 65536;
  const auto range = [](const char* field, int value, int least, int most) {
    const int values[] = {value};
    return check_range(field, values, least, most);
  };
  COPPICE_TRY_STATUS(range("threads", o.threads, 0, 1024));
  COPPICE_TRY_STATUS(range("hidden", o.hidden, 32, kWidest));
  COPPICE_TRY_STATUS(range("feed_forward", o.feed_forward, 32, kWidest));
  COPPICE_TRY_STATUS(range("layers", o.layers, 1, 1024));
  COPPICE_TRY_STATUS(range("heads", o.heads, 1, 1024));
  COPPICE_TRY_STATUS(range("kv_heads", o.kv_heads, 1, o.heads));
  COPPICE_TRY_STATUS(range("head_dim", o.head_dim, 2, 1024));
  COPPICE_TRY_STATUS(range("vocab", o.vocab, 2, 1 << 20));
  COPPICE_TRY_STATUS(check_range("rows", o.rows, 1, 4096));
  COPPICE_TRY_STATUS(check_range("positions", o.positions, 1, 1 << 20));
  if (o.heads % o.kv_heads != 0)
    return fail(fmt::format("kv_heads = {}: it must be a divisor of the {} heads", o.kv_heads, o.heads));
  const int widths[] = {o.hidden, o.feed_forward, o.heads * o.head_dim};
  const char* fields[] = {"hidden", "feed_forward", "head_dim"};
  for (int i = 0; i < 3; ++i)
    if (widths[i] % core::kBlockInputs != 0)
      return fail(fmt::format(
          "{} = {}: {} must be a multiple of {}", fields[i], i == 2 ? o.head_dim : widths[i],
          i == 2 ? fmt::format("{} heads of it", o.heads) : std::string("it"), core::kBlockInputs));
  if (o.head_dim % 2 != 0) return fail(fmt::format("head_dim = {}: it must be even", o.head_dim));
  return {};
}

Result<std::vector<KindName>> choose_kinds(const std::vector<std::string>& names) {
  if (names.empty()) return std::vector<KindName>(std::begin(kKinds), std::end(kKinds));
  std::vector<KindName> chosen;
  for (const std::string& name : names) {
    const auto* found =
        std::find_if(std::begin(kKinds), std::end(kKinds), [&](const KindName& k) { return name == k.name; });
    if (found == std::end(kKinds)) {
      std::string choices;
      for (const KindName& kind : kKinds)
        choices += fmt::format("{}{}", choices.empty() ? "" : ", ", kind.name);
      return fail(
          fmt::format("kinds = {}: there is no such kind of packed weights; there is {}", name, choices));
    }
    chosen.push_back(*found);
  }
  return chosen;
}

}  // namespace

Result<KernelReport> bench_kernels(const KernelBenchOptions& options) {
  COPPICE_TRY_STATUS(check(options));
  COPPICE_TRY(const auto kinds, choose_kinds(options.kinds));
  COPPICE_TRY_STATUS(choose_isa(options.isa));
  KernelBench bench(options);
  return bench.run(kinds);
}

}  // namespace coppice
