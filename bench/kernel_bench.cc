// What a pass over n rows costs in the kernels alone: the matmuls of SmolLM2-135M's shapes on random packed
// weights (or a 772M model's with --large), two threads or --threads n; then attention, noise and the rest by
// themselves. Prints C(n) / C(1), the number the design rests on.
#include <fmt/core.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "base/os.h"
#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace {

using namespace coppice::core;

PackedMatrix random_matrix(PackedKind kind, int outputs, int inputs) {
  PackedMatrix m;
  m.kind = kind, m.outputs = outputs, m.inputs = inputs;
  m.data = std::move(*Buffer::make(m.bytes()));
  std::mt19937 random(1);
  for (std::size_t at = 0; at < m.bytes(); at += 4) {
    const std::uint32_t word = static_cast<std::uint32_t>(random()) & 0x3FFF3FFFu;  // no half is huge
    std::memcpy(m.data.data() + at, &word, 4);
  }
  return m;
}

struct Rows {
  explicit Rows(int rows, int inputs, std::size_t outputs)
      : x(static_cast<std::size_t>(rows) * static_cast<std::size_t>(inputs), 0.01f),
        codes(x.size(), 3),
        scales(x.size() / 32, 0.01f),
        sums(x.size() / 32, 96),
        y(static_cast<std::size_t>(rows) * outputs) {}
  std::vector<float> x;
  std::vector<std::int8_t> codes;
  std::vector<float> scales;
  std::vector<std::int32_t> sums;
  std::vector<float> y;
};

// The thread's own clock, which a busy machine disturbs less: right where one thread does everything.
bool own_clock = false;
double now() {
  if (!own_clock) return seconds();
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

double best_of(int times, const std::function<void()>& body) {
  double best = 1e9;
  for (int i = 0; i < times; ++i) {
    const double start = now();
    body();
    best = std::min(best, now() - start);
  }
  return best;
}

void bench_matmuls(const Kernels& k, PackedKind kind, bool large, int threads) {
  std::vector<PackedMatrix> matrices;
  const int hidden = large ? 1280 : 576, inner = large ? 5120 : 1536, kv = large ? 1280 : 192;
  const int vocabulary = large ? 50256 : 49152;
  for (int layer = 0; layer < (large ? 36 : 30); ++layer) {
    matrices.push_back(random_matrix(kind, hidden + 2 * kv, hidden));
    matrices.push_back(random_matrix(kind, hidden, hidden));
    matrices.push_back(random_matrix(kind, large ? inner : 2 * inner, hidden));
    matrices.push_back(random_matrix(kind, hidden, inner));
  }
  matrices.push_back(random_matrix(PackedKind::q8, vocabulary, hidden));
  std::size_t bytes = 0;
  double products = 0;
  for (const PackedMatrix& m : matrices) bytes += m.bytes(), products += 1.0 * m.outputs * m.inputs;
  const auto stride = static_cast<std::size_t>((vocabulary + 15) / 16 * 16);
  Rows rows(64, inner, stride);
  ThreadPool pool(threads);
  fmt::print("kind {}, {:.1f} MB\n", static_cast<int>(kind), static_cast<double>(bytes) / 1e6);
  double one = 0;
  for (const int n : {1, 2, 3, 4, 6, 7, 8, 12, 16, 32, 64}) {
    const double time = best_of(large ? 4 : 8, [&] {
      pool.run([&](int thread) {
        for (const PackedMatrix& m : matrices) {
          MatmulTask task;
          task.weights = &m;
          task.x = rows.x.data();
          task.q = {rows.codes.data(), rows.scales.data(), rows.scales.data(), rows.sums.data(), m.inputs};
          task.y = rows.y.data(), task.y_stride = stride, task.rows = n;
          const Span1 part = share(m.groups(), thread, threads);
          k.matmul(task, part.begin, part.end);
          pool.barrier();
        }
      });
    });
    if (n == 1) one = time;
    fmt::print("  rows {:2}: {:7.3f} ms  C(n)/C(1) {:5.2f}  {:5.1f} GB/s  {:6.0f} GMAC/s\n", n, time * 1e3,
               time / one, static_cast<double>(bytes) / time / 1e9, products * n / time / 1e9);
  }
}

void bench_attention(const Kernels& k, CacheType type, int positions) {
  const KvLayout layout{type, 3, 9, 64};
  const int blocks = (positions + 15) / 16;
  Buffer cache = std::move(*Buffer::make(layout.block_bytes() * static_cast<std::size_t>(blocks)));
  std::vector<std::int32_t> table;
  for (int i = 0; i < blocks; ++i) table.push_back(i);
  std::vector<float> q(576, 0.1f), out(576), workspace(attention_workspace(layout));
  AttentionRow row;
  row.q = q.data(), row.out = out.data(), row.position = positions - 1, row.committed = positions;
  row.table = table.data(), row.blocks = cache.data(), row.block_stride = layout.block_bytes();
  row.workspace = workspace.data();
  const double time = best_of(200, [&] { k.attention(layout, row, 0, 3); });
  fmt::print("attention, cache type {}, {} positions: {:.1f} us a row and layer\n", static_cast<int>(type),
             positions, time * 1e6);
}

void bench_rest(const Kernels& k) {
  std::vector<double> noise(49152);
  fmt::print("noise of 49,152 ids: {:.0f} us\n", best_of(20, [&] {
                                                   k.gumbel({1, 2, 3}, 7, 0, 49152, noise.data());
                                                 }) * 1e6);
  std::vector<float> x(49152, 0.5f), y(49152);
  fmt::print("argmax of 49,152: {:.1f} us\n",
             best_of(50, [&] { x[5] = static_cast<float>(k.argmax(x.data(), 49152)); }) * 1e6);
  fmt::print("exp2 of 49,152: {:.1f} us\n", best_of(50, [&] { k.exp2(x.data(), y.data(), 49152); }) * 1e6);
  fmt::print("silu_mul of 1,536: {:.2f} us\n",
             best_of(500, [&] { k.silu_mul(x.data(), x.data(), y.data(), 1536); }) * 1e6);
  fmt::print("rms_norm of 576: {:.2f} us\n",
             best_of(500, [&] { k.rms_norm(x.data(), x.data(), 1e-5f, 576, y.data()); }) * 1e6);
  Rows rows(1, 576, 18);
  fmt::print("quantize_row of 576: {:.2f} us\n", best_of(500, [&] {
                                                   k.quantize_row(x.data(), 576, rows.codes.data(),
                                                                  rows.scales.data(), rows.y.data(),
                                                                  rows.sums.data());
                                                 }) * 1e6);
}

}  // namespace

int main(int count, char** words) {
  bool large = false;
  int threads = std::min(2, usable_cores());
  for (int i = 1; i < count; ++i) {
    if (std::string(words[i]) == "--large") large = true;
    if (std::string(words[i]) == "--threads" && i + 1 < count) threads = std::max(1, std::atoi(words[++i]));
  }
  own_clock = threads == 1;
  const Kernels& k = kernels();  // COPPICE_ISA chooses
  fmt::print("{}, {} threads\n", k.name, threads);
  bench_rest(k);
  for (const CacheType type : {CacheType::f32, CacheType::f16, CacheType::q8_0})
    for (const int positions : {256, 2048}) bench_attention(k, type, positions);
  for (const PackedKind kind : {PackedKind::q4_offset, PackedKind::q4})
    bench_matmuls(k, kind, large, threads);
}
