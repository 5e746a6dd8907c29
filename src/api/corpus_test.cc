// A corpus on a small random model: its texts are those that Engine::generate() gives, however many are made
// at once, and a run that was stopped goes on.
#include <coppice/coppice.h>
#include <coppice/fit.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "api/corpus_jobs.h"
#include "base/os.h"
#include "corpus/corpus_folder.h"
#include "gguf/writer.h"
#include "model/random_model.h"
#include "model/slim_testing.h"
#include "quant/formats.h"

namespace coppice {
namespace {

namespace fs = std::filesystem;

// All texts of a folder by job number, whatever the shards.
struct Text {
  std::vector<Token> ids;
  int start = 0;
  float temperature = 0;
  std::uint32_t flags = 0;
  std::string kind;
  std::vector<Token> top_tokens;
  std::vector<std::uint16_t> top_logprobs, features;
  bool operator==(const Text&) const = default;
};

std::map<std::uint64_t, Text> texts_of(const std::string& folder) {
  std::map<std::uint64_t, Text> out;
  const auto description = core::read_corpus_description(folder);
  EXPECT_TRUE(description) << description.error().message;
  const auto shards = core::corpus_shards(folder);
  for (const std::string& path : *shards) {
    const auto shard = core::CorpusShard::open(path);
    EXPECT_TRUE(shard) << (shard ? "" : shard.error().message);
    for (int i = 0; i < shard->texts(); ++i) {
      const core::CorpusRecordView view = shard->text(i);
      Text text{{view.ids.begin(), view.ids.end()},
                view.start,
                view.temperature,
                view.flags,
                description->kinds.at(view.kind),
                {},
                {},
                {view.features.begin(), view.features.end()}};
      for (int p = view.start; p < static_cast<int>(view.ids.size()); ++p) {
        text.top_tokens.insert(text.top_tokens.end(), view.top_tokens(p).begin(), view.top_tokens(p).end());
        text.top_logprobs.insert(text.top_logprobs.end(), view.top_logprobs(p).begin(),
                                 view.top_logprobs(p).end());
      }
      EXPECT_TRUE(out.emplace(view.job, std::move(text)).second) << "job " << view.job << " is there twice";
    }
  }
  return out;
}

class Corpus : public testing::Test {
 protected:
  void SetUp() override {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    load(*core::random_model({}));
    options_.folder = folder_ + "/out";
    options_.max_tokens = 40;
    options_.instruction_tokens = 12;
    options_.context = 128;
    options_.top_k = 4;
    options_.seed = 5;
  }
  void TearDown() override { fs::remove_all(folder_); }

  void load(const std::vector<std::byte>& bytes) {
    ASSERT_TRUE(core::write_file(model_path_, [&](const core::Append& append) { return append(bytes); }));
    ModelOptions options;
    options.threads = 2;
    auto model = Model::load(model_path_, options);
    ASSERT_TRUE(model) << model.error().message;
    model_ = std::make_unique<Model>(*model);
  }
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(folder_ + "/" + name) << text;
    return folder_ + "/" + name;
  }
  std::string some_prompts(int count) {
    std::string lines;
    for (int i = 0; i < count; ++i)
      lines += i % 2 == 0 ? R"({"prompt": "def f)" + std::string(i, 'x') + R"((", "kind": "code"})" + "\n"
                          : R"({"user": "say )" + std::to_string(i) + "\"}\n";
    return write("prompts.jsonl", lines);
  }
  CorpusReport make(const CorpusOptions& options) {
    auto report = make_corpus(*model_, options);
    EXPECT_TRUE(report) << (report ? "" : report.error().message);
    return report.value_or(CorpusReport{});
  }
  std::string refusal(const CorpusOptions& options) {
    auto report = make_corpus(*model_, options);
    return report ? "made" : report.error().message;
  }

  std::string folder_ = testing::TempDir() + "coppice_corpus_test_" + std::to_string(::getpid());
  std::string model_path_ = folder_ + "/model.gguf";
  std::unique_ptr<Model> model_;
  CorpusOptions options_;
};

Generation generate(const Model& model, const std::vector<Token>& prompt, const Sampling& sampling,
                    int context) {
  EngineOptions options;
  options.context = context;
  options.speculation.drafters = "none";
  auto engine = Engine::make(model, options);
  EXPECT_TRUE(engine);
  Request request;
  request.prompt = prompt;
  request.sampling = sampling;
  auto answer = engine->generate(request);
  EXPECT_TRUE(answer);
  return *answer;
}

TEST_F(Corpus, TextsAreThoseThatGenerateGivesWithTheirSeedAndTemperature) {
  options_.prompts = {some_prompts(12)};
  options_.slots = 5;
  options_.rows = 9;
  const CorpusReport report = make(options_);
  EXPECT_EQ(report.progress.texts, 12u);
  const auto texts = texts_of(options_.folder);
  ASSERT_EQ(texts.size(), 12u);
  std::set<float> temperatures;
  for (const auto& [job, text] : texts) {
    temperatures.insert(text.temperature);
    Sampling sampling;
    sampling.temperature = text.temperature;
    sampling.top_k = text.temperature > 0 ? options_.sampling_top_k : 0;
    sampling.seed = corpus_seed(options_.seed, job);
    sampling.max_tokens = options_.max_tokens;
    sampling.logprobs = options_.top_k;
    const std::vector<Token> prompt(text.ids.begin(), text.ids.begin() + text.start);
    const Generation answer = generate(*model_, prompt, sampling, options_.context);
    const std::size_t count = text.ids.size() - static_cast<std::size_t>(text.start);
    if ((text.flags & core::kCutRepetition) != 0)
      EXPECT_LE(count, answer.tokens.size());
    else
      EXPECT_EQ(count, answer.tokens.size());
    EXPECT_EQ((text.flags & core::kEndedByItself) != 0,
              count == answer.tokens.size() && answer.stop == StopReason::end_of_text);
    ASSERT_LE(count, answer.tokens.size());
    ASSERT_EQ(text.top_tokens.size(), 4 * count);
    for (std::size_t i = 0; i < count; ++i) {
      EXPECT_EQ(text.ids[static_cast<std::size_t>(text.start) + i], answer.tokens[i].token)
          << job << " " << i;
      for (std::size_t k = 0; k < 4; ++k) {
        EXPECT_EQ(text.top_tokens[4 * i + k], answer.tokens[i].top[k].first);
        EXPECT_EQ(text.top_logprobs[4 * i + k], core::f32_to_f16(answer.tokens[i].top[k].second));
      }
    }
  }
  EXPECT_GE(temperatures.size(), 2u);
}

TEST_F(Corpus, SlotsRowsThreadsAndFeaturesChangeNoText) {
  options_.prompts = {some_prompts(10)};
  options_.self = 6;
  make(options_);
  const auto expected = texts_of(options_.folder);
  ASSERT_EQ(expected.size(), 16u);
  for (const auto& [slots, rows, threads] : {std::array{1, 1, 1}, {3, 7, 3}, {16, 200, 2}}) {
    ModelOptions load;
    load.threads = threads;
    const auto model = Model::load(model_path_, load);
    ASSERT_TRUE(model);
    CorpusOptions options = options_;
    options.folder = folder_ + "/other" + std::to_string(slots);
    options.slots = slots;
    options.rows = rows;
    options.shard_tokens = 60;
    options.features = {0, 2};
    const auto report = make_corpus(*model, options);
    ASSERT_TRUE(report) << report.error().message;
    EXPECT_GT(report->progress.shards, 1);
    auto texts = texts_of(options.folder);
    for (auto& [job, text] : texts) {
      EXPECT_EQ(text.features.size(), text.ids.size() * 2 * 64);
      text.features.clear();
    }
    EXPECT_EQ(texts, expected) << slots << " slots, " << rows << " rows";
  }
}

TEST_F(Corpus, AConversationTheModelWritesItselfIsAnInstructionAndItsAnswer) {
  options_.self = 100;
  options_.instruction_tokens = 60;
  options_.sampling_top_k = 0;  // so that the end of a message is drawn now and then
  make(options_);
  const auto chat = model_->chat_template();
  ASSERT_TRUE(chat);
  const std::vector<ChatMessage> nothing = {{"user", ""}};
  int answered = 0;
  for (const auto& [job, text] : texts_of(options_.folder)) {
    EXPECT_EQ(text.kind, "magpie");
    // As a conversation with an empty message, up to the end of that message.
    const auto empty = *chat->tokens(nothing, false);
    ASSERT_GE(text.start, 1);
    EXPECT_TRUE(std::equal(text.ids.begin(), text.ids.begin() + text.start, empty.begin()));
    const auto opening = *chat->tokens(nothing);
    const std::vector<Token> between(opening.begin() + text.start, opening.end());
    const auto at =
        std::search(text.ids.begin() + text.start, text.ids.end(), between.begin(), between.end());
    if (at == text.ids.end()) continue;
    ++answered;
    Sampling sampling;
    sampling.temperature = text.temperature;
    sampling.top_k = text.temperature > 0 ? options_.sampling_top_k : 0;
    sampling.seed = corpus_seed(options_.seed, job);
    sampling.max_tokens = options_.max_tokens;
    const std::vector<Token> prompt(text.ids.begin(), at + static_cast<std::ptrdiff_t>(between.size()));
    const Generation answer = generate(*model_, prompt, sampling, options_.context);
    for (std::size_t i = prompt.size(); i < text.ids.size(); ++i)
      EXPECT_EQ(text.ids[i], answer.tokens[i - prompt.size()].token);
  }
  EXPECT_GT(answered, 0) << "this model ends no instruction: the test sees nothing";
}

TEST_F(Corpus, ScoringATextGivesWhatGeneratingItGave) {
  options_.prompts = {some_prompts(6)};
  options_.features = {2, 1};
  make(options_);
  const auto made = texts_of(options_.folder);
  std::string lines;
  for (const auto& [job, text] : made) {
    lines += "{\"start\": " + std::to_string(text.start) + ", \"ids\": [";
    for (std::size_t i = 0; i < text.ids.size(); ++i)
      lines += (i > 0 ? "," : "") + std::to_string(text.ids[i]);
    lines += "]}\n";
  }
  CorpusOptions options = options_;
  options.folder = folder_ + "/scored";
  options.prompts.clear();
  options.score = {write("ids.jsonl", lines)};
  make(options);
  const auto scored = texts_of(options.folder);
  ASSERT_EQ(scored.size(), made.size());
  for (auto a = made.begin(), b = scored.begin(); a != made.end(); ++a, ++b) {
    EXPECT_EQ(b->second.kind, "ids");
    EXPECT_EQ(b->second.ids, a->second.ids);
    EXPECT_EQ(b->second.start, a->second.start);
    EXPECT_EQ(b->second.top_tokens, a->second.top_tokens);
    EXPECT_EQ(b->second.top_logprobs, a->second.top_logprobs);
    EXPECT_EQ(b->second.features, a->second.features);
  }
}

TEST_F(Corpus, AStoppedRunGoesOnAndGivesTheSameTexts) {
  options_.prompts = {some_prompts(14)};
  options_.slots = 3;
  options_.shard_tokens = 50;
  make(options_);
  const auto expected = texts_of(options_.folder);
  options_.folder = folder_ + "/stopped";
  int runs = 0;
  for (bool stopped = true; stopped && runs < 100; ++runs) {
    int passes = 0;
    options_.progress = [&](const CorpusProgress&) { return ++passes < 60; };
    stopped = make(options_).stopped;
  }
  EXPECT_GT(runs, 2);
  EXPECT_EQ(texts_of(options_.folder), expected);
  const CorpusReport again = make(options_);
  EXPECT_EQ(again.progress.run_texts, 0u);
  EXPECT_EQ(again.progress.texts, 14u);
}

TEST_F(Corpus, AKilledRunLosesOnlyWhatWasInNoShard) {
  options_.prompts = {some_prompts(14)};
  options_.slots = 3;
  options_.shard_tokens = 50;
  make(options_);
  const auto expected = texts_of(options_.folder);
  const auto shards = *core::corpus_shards(options_.folder);
  ASSERT_GT(shards.size(), 3u);
  fs::remove(shards.back());
  fs::remove(shards[1]);
  std::ofstream(shards[1] + ".77-0.tmp") << "half a shard";
  make(options_);
  EXPECT_EQ(texts_of(options_.folder), expected);
  EXPECT_FALSE(fs::exists(shards[1] + ".77-0.tmp"));
}

TEST_F(Corpus, OneProcessAtATimeWritesAFolder) {
  options_.prompts = {some_prompts(2)};
  options_.progress = [&](const CorpusProgress&) {
    CorpusOptions second = options_;
    second.progress = {};
    EXPECT_NE(refusal(second).find("another process is at work"), std::string::npos);
    return true;
  };
  make(options_);
}

TEST_F(Corpus, MoreOfTheSameGoesIntoTheSameFolderAndOtherThingsAreRefused) {
  options_.prompts = {some_prompts(4)};
  options_.self = 2;
  make(options_);
  const auto before = texts_of(options_.folder);
  options_.prompts.push_back(write("more.jsonl", "{\"prompt\": \"more\"}\n"));
  options_.self = 5;
  EXPECT_EQ(make(options_).progress.run_texts, 4u);
  const auto after = texts_of(options_.folder);
  EXPECT_EQ(after.size(), before.size() + 4);
  for (const auto& [job, text] : before) EXPECT_EQ(after.at(job), text);

  const auto refused = [&](const char* what, auto change) {
    CorpusOptions options = options_;
    change(options);
    EXPECT_NE(refusal(options).find(what), std::string::npos) << refusal(options);
  };
  refused("seed 5 and this asks for 6", [](CorpusOptions& o) { o.seed = 6; });
  refused("top_k 4", [](CorpusOptions& o) { o.top_k = 8; });
  refused("features of layers []", [](CorpusOptions& o) { o.features = {1}; });
  refused("max_tokens 40", [](CorpusOptions& o) { o.max_tokens = 41; });
  refused("temperatures", [](CorpusOptions& o) { o.temperatures = {{1.0f, 1.0f}}; });
  refused("source 2", [](CorpusOptions& o) { o.prompts.pop_back(); });
  some_prompts(5);
  refused("source 1", [](CorpusOptions&) {});
}

TEST_F(Corpus, TokensEndARunAndTheNextGoesOn) {
  options_.prompts = {some_prompts(20)};
  options_.slots = 2;
  options_.tokens = 100;
  const CorpusReport first = make(options_);
  EXPECT_GE(first.progress.tokens, 100u);
  EXPECT_LE(first.progress.tokens, 100u + 2 * 40);
  EXPECT_FALSE(first.stopped);
  options_.tokens = 0;
  EXPECT_EQ(make(options_).progress.texts, 20u);
}

TEST_F(Corpus, FillingBeginsThePromptsAgainWithOtherSeedsUntilThereIsEnough) {
  options_.prompts = {some_prompts(3)};
  options_.temperatures = {{1.0f, 1.0f}};
  options_.slots = 2;
  options_.tokens = 900;
  const auto whole = fill_corpus(*model_, options_);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_GE(whole->progress.tokens, 900u);
  EXPECT_LE(whole->progress.tokens, 900u + 2 * 40);
  EXPECT_EQ(whole->progress.run_tokens, whole->progress.tokens);
  const auto texts = texts_of(options_.folder);
  EXPECT_GT(texts.size(), 9u);
  std::set<std::vector<Token>> different;
  for (const auto& [job, text] : texts) different.insert(text.ids);
  EXPECT_GT(different.size(), 6u);
  // Stopped after every few passes it comes to the same, and with more tokens wanted it goes on.
  CorpusOptions stopped = options_;
  stopped.folder = folder_ + "/stopped";
  stopped.tokens = 600;
  stopped.shard_tokens = 1;
  int runs = 0;
  for (bool again = true; again && runs < 200; ++runs) {
    int passes = 0;
    stopped.progress = [&](const CorpusProgress&) { return ++passes < 60; };
    const auto report = fill_corpus(*model_, stopped);
    ASSERT_TRUE(report) << report.error().message;
    again = report->stopped;
  }
  EXPECT_GT(runs, 3);
  stopped.progress = {};
  stopped.tokens = 900;
  const auto more = fill_corpus(*model_, stopped);
  ASSERT_TRUE(more) << more.error().message;
  EXPECT_GT(more->progress.run_tokens, 0u);
  EXPECT_GE(more->progress.tokens, 900u);
  for (const auto& [job, text] : texts_of(stopped.folder))
    if (const auto same = texts.find(job); same != texts.end()) {
      EXPECT_EQ(text, same->second);
    }
}

TEST_F(Corpus, FillingRefusesWhatCouldNeverFill) {
  const auto refused = [&] {
    const auto report = fill_corpus(*model_, options_);
    return report ? "made" : report.error().message;
  };
  options_.prompts = {write("long.jsonl", "{\"prompt\": \"" + std::string(3000, 'q') + "\"}\n")};
  EXPECT_NE(refused().find("tokens = 0"), std::string::npos);
  options_.tokens = 10;
  EXPECT_NE(refused().find("long.jsonl, line 1: no prompt leaves room"), std::string::npos);
}

TEST_F(Corpus, AModelThatCannotChatWritesFromItsBeginToken) {
  const auto bytes = *core::random_model({});
  const auto file = *core::gguf::File::parse(bytes, "model.gguf");
  core::gguf::Writer writer;
  for (const core::gguf::Key& key : file->keys())
    if (key.name != "tokenizer.chat_template") writer.copy(key);
  for (const core::gguf::Tensor& tensor : file->tensors()) writer.copy(tensor);
  load(writer.to_bytes());
  options_.tokens = 300;
  ASSERT_TRUE(fill_corpus(*model_, options_));
  for (const auto& [job, text] : texts_of(options_.folder)) {
    EXPECT_EQ(text.kind, "begin");
    ASSERT_EQ(text.start, 1);
    EXPECT_EQ(text.ids[0], model_->tokenizer().bos());
    EXPECT_LE(text.ids.size(), 41u);
  }
}

// A draft of several widths that can guess some of the tokens only: they are stored as what they are in full.
TEST_F(Corpus, ADraftWithATrimmedHeadWritesFullTokenIds) {
  core::RandomModelOptions shape = core::testing::slimmable();
  shape.tied_head = false;
  const std::vector<std::int32_t> kept = {0, 2, 17, 100, 101, 250, 256, 257, 258, 300, 319};
  load(core::testing::with_trimmed_head(*core::random_model(shape), kept));
  options_.prompts = {some_prompts(5)};
  options_.tokens = 300;
  const auto report = fill_corpus(*model_, options_);
  ASSERT_TRUE(report) << report.error().message;
  std::set<Token> written;
  for (const auto& [job, text] : texts_of(options_.folder))
    written.insert(text.ids.begin() + text.start, text.ids.end());
  EXPECT_GT(written.size(), 5u);
  for (const Token token : written) EXPECT_TRUE(std::ranges::binary_search(kept, token)) << token;
}

TEST_F(Corpus, InputsThatAreWrongAreNamedWithFileAndLine) {
  const auto with = [&](const std::string& text) {
    CorpusOptions options = options_;
    options.prompts = {write("bad.jsonl", text)};
    return refusal(options);
  };
  EXPECT_NE(with("{\"prompt\": \"a\"}\n\n{\"prompt\": \n").find("bad.jsonl, line 3"), std::string::npos);
  EXPECT_NE(with("{\"text\": \"a\"}").find("line 1: has neither \"prompt\""), std::string::npos);
  EXPECT_NE(with("{\"prompt\": \"\"}").find("line 1: the prompt is empty"), std::string::npos);
  EXPECT_NE(with("{\"messages\": [{\"role\": \"king\", \"content\": \"a\"}]}").find("line 1: message 0"),
            std::string::npos);
  EXPECT_NE(with("{\"messages\": [{\"role\": \"user\"}]}").find("line 1: a message needs"),
            std::string::npos);
  EXPECT_NE(with("\n").find("has no prompts"), std::string::npos);
  CorpusOptions options = options_;
  options.prompts = {folder_ + "/nowhere.jsonl"};
  EXPECT_NE(refusal(options).find("nowhere.jsonl: cannot open"), std::string::npos);
  options.prompts.clear();
  EXPECT_NE(refusal(options).find("say what the texts begin with"), std::string::npos);
  options.score = {write("ids.jsonl", "{\"ids\": [1, 999999]}")};
  EXPECT_NE(refusal(options).find("line 1: ids[1] is no token id"), std::string::npos);
  options.score = {write("ids.jsonl", "{\"ids\": [1, 2], \"start\": 0}")};
  EXPECT_NE(refusal(options).find("line 1: \"start\" should be a number from 1 to 2"), std::string::npos);
  EXPECT_FALSE(fs::exists(options_.folder)) << "nothing is made for what is refused";
  options.top_k = 3;
  EXPECT_NE(refusal(options).find("top_k = 3: an even number"), std::string::npos);
}

TEST_F(Corpus, PromptsTooLongForTheContextAreLeftOutAndCounted) {
  options_.prompts = {
      write("long.jsonl", "{\"prompt\": \"short\"}\n{\"prompt\": \"" + std::string(3000, 'q') + "\"}\n")};
  const CorpusReport report = make(options_);
  EXPECT_EQ(report.left_out, 1u);
  EXPECT_NE(report.first_left_out.find("long.jsonl, line 2"), std::string::npos);
  EXPECT_EQ(report.progress.texts, 1u);
}

}  // namespace
}  // namespace coppice
