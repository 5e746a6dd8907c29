#include "draft/katz.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <map>
#include <random>

namespace coppice::core {
namespace {

using Text = std::vector<Token>;
using Counts = std::map<Text, std::map<Token, std::uint32_t>>;  // context -> continuations

// Texts in which some things come often and some once.
std::vector<Text> texts(int vocab, int count, int length, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Text> all;
  for (int i = 0; i < count; ++i) {
    Text text;
    Token t = 0;
    for (int j = 0; j < length; ++j) {
      t = random() % 3 != 0 ? (t * 5 + 1) % vocab : static_cast<Token>(random() % vocab);
      text.push_back(t);
    }
    all.push_back(std::move(text));
  }
  return all;
}

Counts count_plainly(const std::vector<Text>& all, int order, std::size_t start) {
  Counts counts;
  for (const Text& text : all)
    for (std::size_t i = start; i < text.size(); ++i)
      for (std::size_t k = 0; k <= std::min<std::size_t>(order, i); ++k)
        ++counts[Text(text.begin() + static_cast<long>(i - k), text.begin() + static_cast<long>(i))][text[i]];
  return counts;
}

std::vector<std::byte> build(const std::vector<Text>& all, KatzBuildOptions options, std::size_t start = 0) {
  KatzBuilder builder(options);
  for (const Text& text : all) builder.add(text, start);
  return builder.to_bytes();
}

std::shared_ptr<const KatzModel> parse(const std::vector<std::byte>& bytes) {
  auto model = KatzModel::parse(bytes, "test.ngram");
  EXPECT_TRUE(model) << model.error().message;
  return *model;
}

KatzBuildOptions options(int order, int vocab) {
  KatzBuildOptions o;
  o.order = order;
  o.vocab = vocab;
  return o;
}

TEST(Katz, CountsWhatPlainCountingCounts) {
  for (const int order : {0, 1, 3, 5, 8}) {
    for (const std::size_t start : {std::size_t{0}, std::size_t{11}}) {
      const auto all = texts(50, 12, 80, 3);
      const Counts plain = count_plainly(all, order, start);
      const auto bytes = build(all, options(order, 50), start);
      const auto model = parse(bytes);
      EXPECT_EQ(model->tokens(), 12 * (80 - start));
      std::vector<NgramContext> found(order + 1);
      for (const auto& [context, followed] : plain) {
        model->contexts(context, found.data());
        const NgramContext& at = found[context.size()];
        std::uint32_t sum = 0;
        for (const auto& [token, n] : followed) sum += n;
        ASSERT_EQ(at.count, sum);
        ASSERT_EQ(at.distinct, followed.size());
        for (Token t = 0; t < 50; ++t)
          ASSERT_EQ(model->count(at, t), followed.contains(t) ? followed.at(t) : 0u);
      }
    }
  }
}

TEST(Katz, ContextsNeverSeenAreNotFound) {
  const auto all = texts(30, 6, 60, 5);
  const Counts plain = count_plainly(all, 4, 0);
  const auto bytes = build(all, options(4, 30));
  const auto model = parse(bytes);
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    Text context(4);
    for (Token& t : context) t = static_cast<Token>(random() % 34);  // some outside the vocabulary
    NgramContext found[5];
    model->contexts(context, found);
    for (int k = 0; k <= 4; ++k)
      ASSERT_EQ(found[k].count != 0, plain.contains(Text(context.end() - k, context.end())));
  }
}

TEST(Katz, TopContinuationsAreByCountThenToken) {
  const auto all = texts(60, 20, 100, 9);
  const Counts plain = count_plainly(all, 2, 0);
  const auto bytes = build(all, options(2, 60));
  const auto model = parse(bytes);
  for (const std::size_t wanted : {1u, 6u, 16u, 40u}) {
    for (const auto& [context, followed] : plain) {
      std::vector<std::pair<int, Token>> right;
      for (const auto& [token, n] : followed) right.push_back({-static_cast<int>(n), token});
      std::sort(right.begin(), right.end());
      NgramContext found[3];
      model->contexts(context, found);
      std::vector<Token> got(wanted);
      std::vector<std::uint32_t> counts(wanted);
      const int n = model->top(found[context.size()], got, counts.data());
      ASSERT_EQ(n, static_cast<int>(std::min(wanted, right.size())));
      for (int i = 0; i < n; ++i) {
        ASSERT_EQ(got[i], right[i].second);
        ASSERT_EQ(counts[i], static_cast<std::uint32_t>(-right[i].first));
      }
    }
  }
}

TEST(Katz, ProbabilitiesSumToOneAtEveryContext) {
  std::vector<KatzBuildOptions> kinds = {options(0, 12), options(2, 12), options(5, 12), options(5, 12),
                                         options(5, 12)};
  kinds[3].min_count = {1, 1, 2, 2, 3};
  kinds[4].max_continuations = 3;
  for (const KatzBuildOptions& kind : kinds) {
    for (const int length : {1, 5, 40, 900}) {
      const auto all = texts(12, 3, length, 2);
      const auto bytes = build(all, kind);
      const auto model = parse(bytes);
      std::vector<NgramContext> found(kind.order + 1);
      Counts contexts = count_plainly(all, kind.order, 0);
      contexts[{11, 11, 11, 11, 11}];
      for (const auto& [context, followed] : contexts) {
        model->contexts(context, found.data());
        double sum = 0;
        for (Token t = 0; t < 12; ++t) {
          const float p = model->probability(found.data(), t);
          ASSERT_GE(p, 0);
          sum += p;
        }
        ASSERT_NEAR(sum, 1, 1e-4) << "order " << kind.order << " length " << length;
      }
    }
  }
}

TEST(Katz, JudgesManyTokensAsOneByOne) {
  for (const int vocab : {12, 5000}) {  // the second has far more tokens than were seen
    for (const int length : {1, 40, 900}) {
      const auto all = texts(12, 3, length, 5);
      const auto bytes = build(all, options(4, vocab));
      const auto model = parse(bytes);
      std::vector<Token> asked = {11, 3, 3, vocab - 1};
      for (Token t = 0; t < 12; ++t) asked.push_back(t);
      Counts contexts = count_plainly(all, 4, 0);
      contexts[{11, 11, 11, 11}];
      for (const auto& [context, followed] : contexts) {
        NgramContext found[5];
        model->contexts(context, found);
        std::vector<std::uint32_t> counts(5 * asked.size());
        std::vector<float> p(asked.size());
        model->judge(found, asked, counts.data(), p.data());
        for (std::size_t t = 0; t < asked.size(); ++t) {
          ASSERT_EQ(p[t], model->probability(found, asked[t]));
          for (std::size_t k = 0; k < 5; ++k)
            ASSERT_EQ(counts[k * asked.size() + t], model->count(found[k], asked[t])) << k;
        }
      }
    }
  }
}

TEST(Katz, PredictionsAreTheMostProbableTokens) {
  for (const int vocab : {10, 200}) {
    const auto all = texts(vocab, 10, 300, 4);
    const auto bytes = build(all, options(4, vocab));
    const auto model = parse(bytes);
    NgramContext found[5];
    int first_right = 0, asked = 0;
    for (const auto& [context, followed] : count_plainly(all, 4, 0)) {
      model->contexts(context, found);
      std::vector<std::pair<float, Token>> all_tokens;
      all_tokens.reserve(static_cast<std::size_t>(vocab));
      for (Token t = 0; t < vocab; ++t) all_tokens.push_back({-model->probability(found, t), t});
      std::sort(all_tokens.begin(), all_tokens.end());
      Token got[8];
      float p[8];
      const int n = model->predict(found, got, p);
      ASSERT_EQ(n, 8);
      for (int i = 0; i < n; ++i) ASSERT_NEAR(p[i], model->probability(found, got[i]), 1e-6);
      // Of each context length only the sixteen most frequent are looked at: exact for a small vocabulary.
      for (int i = 0; i < n && vocab == 10; ++i) ASSERT_NEAR(p[i], -all_tokens[i].first, 1e-6);
      first_right += p[0] >= -all_tokens[0].first - 1e-6;
      ++asked;
    }
    EXPECT_EQ(first_right, asked);
  }
}

TEST(Katz, PruningKeepsTheCountsOfContexts) {
  const auto all = texts(20, 10, 200, 6);
  KatzBuildOptions o = options(3, 20);
  o.min_count = {1, 1, 2, 2};
  const auto bytes = build(all, o);
  EXPECT_LT(bytes.size(), build(all, options(3, 20)).size());
  const auto model = parse(bytes);
  for (const auto& [context, followed] : count_plainly(all, 3, 0)) {
    std::uint32_t sum = 0, most = 0;
    for (const auto& [token, n] : followed) sum += n, most = std::max(most, n);
    NgramContext found[4];
    model->contexts(context, found);
    const NgramContext& at = found[context.size()];
    if (context.size() < 2 || most >= 2) {
      ASSERT_EQ(at.count, sum);
      ASSERT_EQ(at.distinct, followed.size());
      for (const auto& [token, n] : followed)
        ASSERT_EQ(model->count(at, token), context.size() < 2 || n >= 2 ? n : 0);
    } else {
      ASSERT_EQ(at.count, 0u);
    }
  }
}

TEST(Katz, AFileReadBackSaysTheSame) {
  const auto all = texts(40, 8, 90, 8);
  KatzBuildOptions o = options(4, 40);
  o.vocabulary_hash = 0x1234567890abcdefu;
  o.provenance = "counted on texts of a test";
  KatzBuilder builder(o);
  for (const Text& text : all) builder.add(text);
  const std::string path = testing::TempDir() + "katz_test.ngram";
  ASSERT_TRUE(builder.write(path));
  const auto model = KatzModel::open(path);
  ASSERT_TRUE(model) << model.error().message;
  EXPECT_EQ((*model)->vocabulary_hash(), o.vocabulary_hash);
  EXPECT_EQ((*model)->provenance(), o.provenance);
  EXPECT_EQ((*model)->order(), 4);
  EXPECT_EQ((*model)->vocab(), 40);
  EXPECT_EQ((*model)->bytes(), builder.to_bytes().size());
  std::remove(path.c_str());
}

TEST(Katz, WideVocabulariesUseFourByteTokens) {
  const auto all = texts(100000, 5, 50, 8);
  const auto bytes = build(all, options(3, 100000));
  const auto model = parse(bytes);
  for (const auto& [context, followed] : count_plainly(all, 3, 0)) {
    NgramContext found[4];
    model->contexts(context, found);
    for (const auto& [token, n] : followed) ASSERT_EQ(model->count(found[context.size()], token), n);
  }
}

TEST(Katz, AMissingFileIsRefusedByName) {
  const auto model = KatzModel::open("/nowhere/x.ngram");
  ASSERT_FALSE(model);
  EXPECT_NE(model.error().message.find("/nowhere/x.ngram"), std::string::npos);
}

TEST(Katz, EveryTruncationIsRefused) {
  const auto bytes = build(texts(20, 3, 40, 1), options(3, 20));
  for (std::size_t n = 0; n < bytes.size(); ++n)
    ASSERT_FALSE(KatzModel::parse(std::span(bytes).first(n), "cut.ngram")) << n;
}

// Whatever a damaged file says, lookups stay inside it (the sanitizers watch).
TEST(Katz, DamagedFilesAreRefusedOrHarmless) {
  const auto good = build(texts(20, 4, 60, 1), options(4, 20));
  std::mt19937 random(3);
  int refused = 0;
  for (std::size_t round = 0; round < 40000; ++round) {
    // An exact-size copy, so that one byte too far is seen.
    const auto bytes = std::make_unique<std::byte[]>(good.size());
    std::memcpy(bytes.get(), good.data(), good.size());
    const std::size_t at = round < good.size() ? round : random() % good.size();
    bytes[at] = static_cast<std::byte>(random());
    if (round % 3 == 0) bytes[random() % good.size()] ^= static_cast<std::byte>(1 << random() % 8);
    const auto model = KatzModel::parse({bytes.get(), good.size()}, "damaged.ngram");
    if (!model) {
      ++refused;
      continue;
    }
    std::vector<NgramContext> found((*model)->order() + 1);
    Text context(8);
    for (Token& t : context) t = static_cast<Token>(random() % 20);
    (*model)->contexts(context, found.data());
    Token tokens[16];
    float p[16];
    std::uint32_t counts[16];
    (*model)->predict(found.data(), tokens, p);
    for (const NgramContext& c : found) (*model)->top(c, tokens, counts);
    (*model)->probability(found.data(), 3);
  }
  EXPECT_GT(refused, 1000);
}

TEST(Katz, PredictsInAboutAMicrosecond) {  // printed, not asserted: machines differ
  const auto all = texts(5000, 200, 1000, 4);
  const auto bytes = build(all, options(5, 5000));
  const auto model = parse(bytes);
  const std::clock_t begin = std::clock();  // of this process: others do not count
  int asked = 0, got = 0;
  for (const Text& text : all) {
    for (std::size_t i = 5; i < text.size(); i += 3, ++asked) {
      NgramContext found[6];
      Token tokens[8];
      float p[8];
      model->contexts(std::span(text).first(i), found);
      got += model->predict(found, tokens, p);
    }
  }
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  std::printf("contexts and predict: %.2f us, %zu bytes for %zu tokens\n", 1e6 * seconds / asked,
              bytes.size(), static_cast<std::size_t>(model->tokens()));
  EXPECT_GT(got, 0);
}

}  // namespace
}  // namespace coppice::core
