// Scales: the token embedding is small beside what the blocks add, else a tied head would answer every token
// with itself; the last norm's weights then widen the logits.
#include "model/random_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "gguf/writer.h"
#include "model/architectures.h"
#include "model/random_numbers.h"
#include "model/slim.h"
#include "quant/formats.h"

namespace coppice::core {
namespace {

constexpr float kEmbeddingSpread = 0.1f;
constexpr float kBlockSpread = 1.5f;
constexpr float kLogitSpread = 2.5f;  // standard deviation of the logits

void append_utf8(std::string& text, unsigned character) {
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else {  // the GPT-2 alphabet ends at U+0143
    text += static_cast<char>(0xc0 | (character >> 6));
    text += static_cast<char>(0x80 | (character & 0x3f));
  }
}

// Printable bytes are themselves, the others follow from U+0100 on.
std::vector<std::string> byte_alphabet() {
  std::vector<std::string> alphabet;
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    alphabet.emplace_back();
    append_utf8(alphabet.back(), printable ? byte : next++);
  }
  return alphabet;
}

void add_vocabulary(gguf::Writer& writer, const RandomModelOptions& options) {
  std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<std::int32_t> kinds = {3, 3, 3};
  for (std::string& byte : byte_alphabet()) tokens.push_back(std::move(byte));
  // Longer tokens: each earlier one of letters, extended by a letter. A string of letters comes up once, so
  // no token is made by two merges.
  const std::string_view letters = "etaoinshrdlucmfwypvbgkjqxz";
  std::vector<std::string> stems = {"\xc4\xa0"};  // the space
  for (const char letter : letters) stems.emplace_back(1, letter);
  std::vector<std::string> merges;
  for (std::size_t stem = 0; static_cast<int>(tokens.size()) < options.vocab; ++stem)
    for (const char letter : letters) {
      if (static_cast<int>(tokens.size()) == options.vocab) break;
      merges.push_back(stems[stem] + " " + letter);
      stems.push_back(stems[stem] + letter);
      tokens.push_back(stems.back());
    }
  kinds.resize(tokens.size(), 1);
  writer.add_text("tokenizer.ggml.model", "gpt2");
  writer.add_text("tokenizer.ggml.pre", options.pre);
  writer.add_texts("tokenizer.ggml.tokens", std::move(tokens));
  writer.add_i32s("tokenizer.ggml.token_type", std::move(kinds));
  writer.add_texts("tokenizer.ggml.merges", std::move(merges));
  writer.add_u32("tokenizer.ggml.bos_token_id", 1);
  writer.add_u32("tokenizer.ggml.eos_token_id", 2);
  writer.add_u32("tokenizer.ggml.unknown_token_id", 0);
  writer.add_bool("tokenizer.ggml.add_bos_token", false);
  writer.add_text(
      "tokenizer.chat_template",
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
      "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' "
      "}}{% endif %}");
}

class Maker {
 public:
  Maker(const RandomModelOptions& options, const Architecture& row, ThreadPool& pool)
      : options_(options), row_(row), pool_(pool), random_(options.seed) {
    if (options_.head_dim == 0 && options_.heads > 0) options_.head_dim = options_.hidden / options_.heads;
    if (row.tensors.down == nullptr && options_.experts == 0) options_.experts = 4;
  }
  Status check() const;
  const gguf::Writer& make();
  std::int64_t values() const { return values_; }
  // Called while the writer writes, with the fraction of the values written; false: stop.
  std::function<bool(double)> progress;

 private:
  bool has(Bias bias) const {
    return bias == Bias::required || (bias == Bias::optional && row_.flags.norm == Norm::layer);
  }
  Status check_sizes() const;
  Status check_experts() const;
  Status check_format(std::string_view field, const std::string& name,
                      std::initializer_list<int> inputs) const;
  void add_shape();
  void add_family();  // what only some architectures state
  void add_slim();
  void add_layer(int number);
  // inputs x outputs, values of `spread` divided by sqrt(inputs): outputs then have about that spread.
  void matrix(const std::string& name, const std::string& format, std::vector<std::int64_t> shape,
              float spread);
  Status produce(const Format& format, std::int64_t inputs, std::int64_t outputs, Random random, float spread,
                 const Append& append);
  void block_matrix(const std::string& name, int inputs, int outputs, Bias bias);
  void vector(const std::string& name, int size, float mean, float spread);
  void norm(const std::string& name, float mean);  // and those of narrower widths
  void block_norm(int number, const char* role);   // nothing where the architecture has none
  void add_feed_forward(int number);
  void expert_matrices(const std::string& name, int inputs, int outputs);
  bool has_experts() const { return options_.experts > 0; }

  RandomModelOptions options_;
  const Architecture& row_;
  ThreadPool& pool_;
  Random random_;
  gguf::Writer writer_;
  std::size_t matrices_ = 0;
  std::int64_t values_ = 0, written_ = 0;
};

tl::unexpected<Error> refuse(std::string_view what, std::int64_t value, std::string_view right) {
  return fail(fmt::format("{} = {}: it must be {}", what, value, right));
}

constexpr std::int64_t kMostWidth = 65536;

Status check_width(std::string_view what, std::int64_t value) {
  if (value >= kBlockInputs && value <= kMostWidth && value % kBlockInputs == 0) return {};
  return refuse(what, value, fmt::format("a multiple of {} up to {}", kBlockInputs, kMostWidth));
}

Status Maker::check_sizes() const {
  const RandomModelOptions& o = options_;
  if (o.vocab < 260 || o.vocab > 262144) return refuse("vocab", o.vocab, "from 260 to 262144");
  COPPICE_TRY_STATUS(check_width("hidden", o.hidden));
  COPPICE_TRY_STATUS(check_width("feed_forward", o.feed_forward));
  if (o.layers < 1 || o.layers > 1024) return refuse("layers", o.layers, "from 1 to 1024");
  if (o.context_length < 1 || o.context_length > 1 << 20)
    return refuse("context_length", o.context_length, "from 1 to 1048576");
  if (o.heads < 1 || o.heads > 4096) return refuse("heads", o.heads, "from 1 to 4096");
  if (o.kv_heads < 1 || o.heads % o.kv_heads != 0)
    return refuse("kv_heads", o.kv_heads, fmt::format("a divisor of the {} heads", o.heads));
  if (options_.head_dim < 2 || o.head_dim > 4096 || o.head_dim % 2 != 0)
    return refuse("head_dim", o.head_dim, "even, from 2 to 4096 (it is hidden / heads where nobody says it)");
  const std::int64_t width = static_cast<std::int64_t>(o.heads) * o.head_dim;
  if (Status wide = check_width("head_dim", width); !wide)
    return refuse("head_dim", o.head_dim,
                  fmt::format("such that {} heads are a multiple of {} together, up to {}; they are {}",
                              o.heads, kBlockInputs, kMostWidth, width));
  return {};
}

Status Maker::check_format(std::string_view field, const std::string& name,
                           std::initializer_list<int> inputs) const {
  const auto format = format_to_write(name, std::span(inputs.begin(), inputs.size()));
  if (!format) return fail(fmt::format("{} = {}", field, format.error().message));
  return {};
}

Status Maker::check_experts() const {
  const RandomModelOptions& o = options_;
  const bool possible = row_.tensors.router != nullptr, needed = row_.tensors.down == nullptr;
  if (o.experts == 0 && !needed) return {};
  if (!possible) return refuse("experts", o.experts, fmt::format("0: {} has none", row_.name));
  if (o.experts < 2 || o.experts > 1024) return refuse("experts", o.experts, "from 2 to 1024");
  if (o.experts_used < 1 || o.experts_used > o.experts || o.experts_used > 64)
    return refuse("experts_used", o.experts_used, "from 1 to 64, and at most the experts there are");
  return {};
}

Status Maker::check() const {
  COPPICE_TRY_STATUS(check_sizes());
  const RandomModelOptions& o = options_;
  if (!o.slim.hidden.empty()) {
    if (row_.name != "llama") return fail("slim = not empty: only the architecture llama has widths");
    if (Status right = check_slim(o.slim, o.hidden, o.feed_forward, o.layers); !right)
      return fail("slim: " + right.error().message);
  }
  COPPICE_TRY_STATUS(check_experts());
  if (o.window < 0) return refuse("window", o.window, "0 (none) or more");
  if (o.formats.empty()) return fail("formats = nothing: name at least one");
  for (const std::string& format : o.formats)
    COPPICE_TRY_STATUS(check_format("formats", format, {o.hidden, o.heads * o.head_dim, o.feed_forward}));
  return check_format("embedding_format", o.embedding_format, {o.hidden});
}

// A matrix is made while it is written. Its numbers are known by their place in the order of all numbers, so
// that any thread can make any of them.
void Maker::matrix(const std::string& name, const std::string& format_name, std::vector<std::int64_t> shape,
                   float spread) {
  const Format& format = *find_format(format_name);
  const std::int64_t inputs = shape[0], outputs = shape[1] * (shape.size() > 2 ? shape[2] : 1);
  writer_.add_produced(name, format, std::move(shape),
                       [=, this, &format, random = random_](const Append& append) {
                         return produce(format, inputs, outputs, random, spread, append);
                       });
  random_.skip(inputs * outputs);
  values_ += inputs * outputs;
}

Status Maker::produce(const Format& format, std::int64_t inputs, std::int64_t outputs, Random random,
                      float spread, const Append& append) {
  constexpr std::int64_t kAtOnce = 1 << 20;  // values of one thread
  const int threads = pool_.size();
  const std::int64_t rows = std::min(std::max<std::int64_t>(1, kAtOnce / inputs) * threads, outputs);
  const std::size_t row = row_bytes(format, inputs);
  std::vector<std::byte> bytes(row * static_cast<std::size_t>(rows));
  std::vector<std::vector<float>> values(static_cast<std::size_t>(threads));
  for (auto& own : values) own.resize(static_cast<std::size_t>(inputs * ((rows + threads - 1) / threads)));
  for (std::int64_t first = 0; first < outputs; first += rows) {
    const int count = static_cast<int>(std::min(rows, outputs - first));
    pool_.run([&](int thread) {
      const Span1 part = share(count, thread, threads);
      const std::int64_t wanted = inputs * (part.end - part.begin);
      if (wanted == 0) return;
      float* own = values[static_cast<std::size_t>(thread)].data();
      Random here = random;
      here.skip(inputs * (first + part.begin));
      for (std::int64_t i = 0; i < wanted; ++i) own[i] = spread * here.bell();
      format.quantize(own, nullptr, bytes.data() + row * static_cast<std::size_t>(part.begin), wanted);
    });
    COPPICE_TRY_STATUS(append(std::span(bytes).first(row * static_cast<std::size_t>(count))));
    written_ += inputs * count;
    if (progress && !progress(static_cast<double>(written_) / static_cast<double>(values_)))
      return fail("stopped");
  }
  return {};
}

// Square root and division are exact everywhere (IEEE).
float over_root(float spread, int inputs) { return spread / std::sqrt(static_cast<float>(inputs)); }

void Maker::block_matrix(const std::string& name, int inputs, int outputs, Bias bias) {
  const std::string& format = options_.formats[matrices_++ % options_.formats.size()];
  matrix(name + ".weight", format, {inputs, outputs}, over_root(kBlockSpread, inputs));
  if (has(bias)) vector(name + ".bias", outputs, 0.0f, 0.1f);
}

void Maker::expert_matrices(const std::string& name, int inputs, int outputs) {
  const std::string& format = options_.formats[matrices_++ % options_.formats.size()];
  matrix(name + ".weight", format, {inputs, outputs, options_.experts}, over_root(kBlockSpread, inputs));
}

void Maker::vector(const std::string& name, int size, float mean, float spread) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& value : values) value = mean + spread * random_.bell();
  writer_.add_values(name, *find_format("F32"), {size}, values);
  values_ += size;
}

void Maker::norm(const std::string& name, float mean) {
  vector(name + ".weight", options_.hidden, mean, 0.1f * mean);
  if (row_.flags.norm == Norm::layer) vector(name + ".bias", options_.hidden, 0.0f, 0.05f * mean);
  for (const int hidden : options_.slim.hidden)
    if (hidden != options_.hidden) vector(narrow_norm(name, hidden) + ".weight", hidden, mean, 0.1f * mean);
}

void Maker::block_norm(int number, const char* role) {
  if (role != nullptr) norm(fmt::format("blk.{}.{}", number, role), 1.0f);
}

void Maker::add_shape() {
  const RandomModelOptions& o = options_;
  const std::string prefix = std::string(row_.name) + ".";
  const auto u32 = [&](const char* key, int value) {
    writer_.add_u32(prefix + key, static_cast<std::uint32_t>(value));
  };
  writer_.add_text("general.architecture", std::string(row_.name));
  writer_.add_text("general.name", fmt::format("random {} seed {}", row_.name, o.seed));
  u32("context_length", o.context_length);
  u32("embedding_length", o.hidden);
  u32("block_count", o.layers);
  u32("feed_forward_length", o.feed_forward);
  u32("attention.head_count", o.heads);
  u32("attention.head_count_kv", o.kv_heads);
  u32("attention.key_length", o.head_dim);
  u32("attention.value_length", o.head_dim);
  if (row_.flags.positions == Positions::rope) {
    u32("rope.dimension_count", o.head_dim);
    writer_.add_f32(prefix + "rope.freq_base", 10000.0f);
  }
  const bool rms = row_.flags.norm == Norm::rms;
  writer_.add_f32(prefix + (rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon"),
                  1e-5f);
  if (o.window > 0) u32("attention.sliding_window", o.window);
  add_family();
}

void Maker::add_family() {
  if (has_experts()) {
    writer_.add_u32(fmt::format("{}.expert_count", row_.name), static_cast<std::uint32_t>(options_.experts));
    writer_.add_u32(fmt::format("{}.expert_used_count", row_.name),
                    static_cast<std::uint32_t>(options_.experts_used));
  }
  const auto f32 = [&](const char* key, float value) {
    writer_.add_f32(fmt::format("{}.{}", row_.name, key), value);
  };
  if (row_.name.starts_with("granite")) {
    f32("embedding_scale", 1.5f);
    f32("residual_scale", 0.7f);
    f32("attention.scale", 0.2f);
    f32("logit_scale", 0.5f);
  }
}

void Maker::add_slim() {
  const SlimWidths& slim = options_.slim;
  if (slim.hidden.empty()) return;
  const auto unsigned_of = [](const std::vector<int>& values) {
    return std::vector<std::uint32_t>(values.begin(), values.end());
  };
  writer_.add_u32s("coppice.slim.hidden", unsigned_of(slim.hidden));
  writer_.add_u32s("coppice.slim.feed_forward", unsigned_of(slim.feed_forward));
  writer_.add_f32s("coppice.slim.factors", slim.factors);
  writer_.add_u32("coppice.slim.exit_layer", static_cast<std::uint32_t>(slim.exit_layer));
  writer_.add_u32("coppice.slim.exit_width", static_cast<std::uint32_t>(slim.exit_width));
}

void Maker::add_layer(int number) {
  const RandomModelOptions& o = options_;
  const TensorNames& names = row_.tensors;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  const int q = o.heads * o.head_dim, kv = o.kv_heads * o.head_dim;
  const BlockFlags& flags = row_.flags;
  block_norm(number, names.attention_norm);
  if (names.query_key_value != nullptr) {
    block_matrix(name(names.query_key_value), o.hidden, q + 2 * kv, flags.bias_qkv);
  } else {
    block_matrix(name(names.query), o.hidden, q, flags.bias_qkv);
    block_matrix(name(names.key), o.hidden, kv, flags.bias_qkv);
    block_matrix(name(names.value), o.hidden, kv, flags.bias_qkv);
  }
  if (names.query_norm != nullptr) {
    vector(name(names.query_norm) + ".weight", flags.whole_query_norm ? q : o.head_dim, 1.0f, 0.1f);
    vector(name(names.key_norm) + ".weight", flags.whole_query_norm ? kv : o.head_dim, 1.0f, 0.1f);
  }
  block_matrix(name(names.attention_output), q, o.hidden, flags.bias_output);
  block_norm(number, names.attention_post_norm);
  block_norm(number, names.feed_forward_norm);
  add_feed_forward(number);
  block_norm(number, names.feed_forward_post_norm);
}

void Maker::add_feed_forward(int number) {
  const TensorNames& names = row_.tensors;
  const BlockFlags& flags = row_.flags;
  const int hidden = options_.hidden, ff = options_.feed_forward;
  const auto name = [&](const char* role) { return fmt::format("blk.{}.{}", number, role); };
  if (has_experts()) {
    matrix(name(names.router) + ".weight", "F32", {hidden, options_.experts},
           over_root(kBlockSpread, hidden));
    expert_matrices(name(names.expert_gates), hidden, ff);
    expert_matrices(name(names.expert_ups), hidden, ff);
    expert_matrices(name(names.expert_downs), ff, hidden);
    return;
  }
  if (names.gate != nullptr) block_matrix(name(names.gate), hidden, ff, flags.bias_feed_forward);
  block_matrix(name(names.up), hidden, flags.fused_gate_up ? 2 * ff : ff, flags.bias_feed_forward);
  block_matrix(name(names.down), ff, hidden, flags.bias_feed_forward);
}

const gguf::Writer& Maker::make() {
  const RandomModelOptions& o = options_;
  const TensorNames& names = row_.tensors;
  // Gemma's embeddings are multiplied by the root of their width.
  const float spread =
      row_.name.starts_with("gemma") ? over_root(kEmbeddingSpread, o.hidden) : kEmbeddingSpread;
  add_shape();
  add_slim();
  add_vocabulary(writer_, o);
  matrix(std::string(names.token_embedding) + ".weight", o.embedding_format, {o.hidden, o.vocab}, spread);
  if (names.position_embedding != nullptr)
    matrix(std::string(names.position_embedding) + ".weight", "F32", {o.hidden, o.context_length}, spread);
  for (int i = 0; i < o.layers; ++i) add_layer(i);
  // A normed row has length sqrt(hidden), so logits spread by this weight * the embedding's spread *
  // sqrt(hidden).
  const float last = over_root(kLogitSpread / spread, o.hidden);
  norm(names.output_norm, last);
  if (o.slim.exit_layer > 0) vector("exit_norm.weight", o.slim.hidden[o.slim.exit_width], last, 0.1f * last);
  if (!o.tied_head)
    matrix(std::string(names.head) + ".weight", o.embedding_format, {o.hidden, o.vocab}, spread);
  return writer_;
}

// Calls `use` with a maker whose options are right.
template <class Use>
auto with_maker(const RandomModelOptions& options, ThreadPool& pool, Use use)
    -> decltype(use(std::declval<Maker&>())) {
  std::string names;
  for (const Architecture& row : architectures()) {
    if (row.name == options.architecture) {
      Maker maker(options, row, pool);
      if (Status status = maker.check(); !status) return tl::unexpected(std::move(status).error());
      return use(maker);
    }
    names += (names.empty() ? "" : ", ") + std::string(row.name);
  }
  return fail(
      fmt::format("architecture = {}: there is no such one; there is {}", options.architecture, names));
}

}  // namespace

Result<std::vector<std::byte>> random_model(const RandomModelOptions& options) {
  ThreadPool pool(1);
  return with_maker(options, pool,
                    [](Maker& maker) -> Result<std::vector<std::byte>> { return maker.make().to_bytes(); });
}

Result<RandomModelSize> write_random_model(const RandomModelOptions& options, const std::string& path,
                                           ThreadPool& pool, const std::function<bool(double)>& progress) {
  return with_maker(options, pool, [&](Maker& maker) -> Result<RandomModelSize> {
    maker.progress = progress;
    const gguf::Writer& writer = maker.make();
    COPPICE_TRY_STATUS(writer.write(path));
    return RandomModelSize{static_cast<std::uint64_t>(maker.values()), writer.bytes()};
  });
}

}  // namespace coppice::core
