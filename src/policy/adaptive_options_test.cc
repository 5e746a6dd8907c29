#include "policy/adaptive_options.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "policy/policy.h"

namespace coppice::core {
namespace {

Result<AdaptiveOptions> read(const std::string& text) {
  auto expression = parse_call(text, "policy");
  if (!expression) return tl::unexpected(expression.error());
  return read_adaptive_options(*expression);
}

std::string refusal(const std::string& text) {
  const auto options = read(text);
  EXPECT_FALSE(options) << text;
  return options ? "" : options.error().message;
}

TEST(AdaptiveOptions, ThePaperIsTheDefault) {
  for (const char* name : {"adaptive", "adaptive-paper", "adaptive-paper()"}) {
    const AdaptiveOptions options = *read(name);
    EXPECT_EQ(options.tau, 0.7);
    EXPECT_EQ(options.exit, 0.7);
    EXPECT_EQ(options.every, 8);
    EXPECT_EQ(options.again, 0.85);
    EXPECT_EQ(options.batch, 16);
    EXPECT_EQ(options.reject, 0.3);
    EXPECT_EQ(options.upgrade, 0.2);
    EXPECT_EQ(options.failure, 0.35);
    EXPECT_EQ(options.stop, 0.7);
    EXPECT_EQ(options.monitor, 32);
  }
  EXPECT_EQ(read("adaptive-paper(task=maths)")->tau, 0.6);
  EXPECT_EQ(read("adaptive-paper(task=creative)")->tau, 0.8);
}

TEST(AdaptiveOptions, FittedIsAnotherBeginningAndWhatIsWrittenOutComesLast) {
  const AdaptiveOptions fitted = *read("adaptive-fitted"), paper = *read("adaptive-paper");
  EXPECT_NE(fitted.stop, paper.stop);
  const AdaptiveOptions own = *read("adaptive-fitted(batch=8, stop=0.7, window=static, acceptance=whole)");
  EXPECT_EQ(own.batch, 8);
  EXPECT_EQ(own.stop, 0.7);
  EXPECT_EQ(own.tau, fitted.tau);
  EXPECT_FALSE(own.dynamic);
  EXPECT_FALSE(own.sliding);
}

TEST(AdaptiveOptions, RulesCanBeSwitchedOff) {
  const AdaptiveOptions options =
      *read("adaptive(tau=off, batch=off, reject=off, upgrade=off, failure=off, stop=off, gate=off)");
  EXPECT_EQ(options.tau, 0);
  EXPECT_EQ(options.batch, 0);
  EXPECT_EQ(options.reject, 0);
  EXPECT_EQ(options.upgrade, AdaptiveOptions::kNever);
  EXPECT_EQ(options.stop, 0);
}

TEST(AdaptiveOptions, WhatIsWrongIsSaidWithWhatWouldBeRight) {
  EXPECT_EQ(refusal("adaptive(tau=7)"), "policy `adaptive`: tau=7 should be a number from 0 to 1, or off");
  EXPECT_EQ(refusal("adaptive(batch=2.5)"),
            "policy `adaptive`: batch=2.5 should be a whole number from 1 to 255, or off");
  EXPECT_EQ(refusal("adaptive(every=off)"),
            "policy `adaptive`: every=off should be a whole number from 1 to 4096");
  EXPECT_EQ(refusal("adaptive(task=poems)"),
            "policy `adaptive`: task=poems should be maths, creative or any");
  EXPECT_NE(refusal("adaptive(speed=9)").find("there is no option `speed`; there is task, "),
            std::string::npos);
  EXPECT_NE(refusal("adaptive(lookup)").find("takes options only"), std::string::npos);
  EXPECT_EQ(refusal("adaptive(tau=0.5"), "policy, column 17: expected `,` or the `)` of `adaptive(`");
  EXPECT_EQ(refusal("adaptive(tau=0.5) fast"), "policy, column 19: expected the end");
  EXPECT_EQ(choose_policy("auto(tau=0.5)").error().message, "policy `auto` takes no options; write auto");
}

TEST(AdaptiveOptions, AFileOfSettingsComesAfterThePresetAndBeforeWhatIsWrittenOut) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("coppice_adaptive_options_" + std::to_string(::getpid()) + ".policy");
  std::ofstream(path) << "# fitted on something\ntau = 0.55   # of 40 prompts\nbatch = 32\ngate = my.gate\n";
  const std::string from = "from=\"" + path.string() + "\"";
  const AdaptiveOptions options = *read("adaptive-paper(batch=8, " + from + ")");
  EXPECT_EQ(options.tau, 0.55);
  EXPECT_EQ(options.batch, 8);
  EXPECT_EQ(options.gate, (path.parent_path() / "my.gate").string());
  std::ofstream(path) << "tau = 0.5\nhello\n";
  EXPECT_EQ(refusal("adaptive(" + from + ")"), path.string() + ", line 2: expected name = value");
  std::ofstream(path) << "\nstop = 3\n";
  EXPECT_EQ(refusal("adaptive(" + from + ")"),
            path.string() + ", line 2: stop=3 should be a number from 0 to 1, or off");
  std::filesystem::remove(path);
  EXPECT_EQ(refusal("adaptive(" + from + ")"),
            path.string() + ": cannot open: No such file or directory; it should hold lines `name = value`");
  EXPECT_TRUE(choose_policy("adaptive(" + from + ")")) << "files are read when the policy is made";
}

TEST(AdaptiveOptions, AFileThatHoldsNoSettingsIsRefusedInOneShortSentence) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("coppice_no_options_" + std::to_string(::getpid()) + ".policy");
  const auto said = [&](const std::string& content) {
    std::ofstream(path, std::ios::binary) << content;
    const std::string sentence = refusal("adaptive(from=\"" + path.string() + "\")");
    EXPECT_EQ(sentence.find(path.string() + ", line 1: "), 0u) << sentence;
    return sentence.substr(std::min(sentence.size(), path.string().size() + 10));
  };
  EXPECT_EQ(said("\x1b[31mred = 1\n"), "expected name = value");
  EXPECT_EQ(said(std::string("tau\0 = 1", 8)), "expected name = value");
  EXPECT_EQ(said(std::string(1 << 20, 'x') + " = 1"), "expected name = value");
  EXPECT_EQ(said("tau = nan"), "tau=nan should be a number from 0 to 1, or off");
  EXPECT_EQ(said("gate ="), "gate= should be a file, or off");
  EXPECT_EQ(said("from = other"), "from=FILE stands in the policy's expression, not in a file");
  std::ofstream(path) << "";
  EXPECT_TRUE(read("adaptive(from=\"" + path.string() + "\")")) << "an empty file changes nothing";
  std::filesystem::remove(path);
  EXPECT_NE(refusal("adaptive(from=\"/dev/zero\")").find("/dev/zero: is longer than"), std::string::npos);
}

TEST(PromptConfidence, FallsWithPerplexityFromOneToNothing) {
  EXPECT_EQ(prompt_confidence(0, 49152), 1);
  EXPECT_NEAR(prompt_confidence(std::log(49152.0), 49152), 0, 1e-12);
  EXPECT_NEAR(prompt_confidence(std::log(26.0), 49152), 0.7, 0.01);
  EXPECT_EQ(prompt_confidence(50, 49152), 0);
}

}  // namespace
}  // namespace coppice::core
