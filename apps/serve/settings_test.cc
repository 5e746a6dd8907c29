#include "settings.h"

#include <gtest/gtest.h>

namespace coppice::serve {
namespace {

class SettingsOf : public testing::Test {
 protected:
  SettingsOf() {
    app_.add_option("--port", port_)->check(CLI::Range(0, 65535))->capture_default_str();
    app_.add_option("--host", host_)->capture_default_str();
    app_.add_option("-m,--model", models_);
    app_.add_option("--api-key", key_);
    app_.add_flag("--packed-cache", packed_);
    app_.add_flag("--print-config", print_);
  }
  void type(const std::string& line) { app_.parse(line, false); }
  Settings settings() { return Settings(app_, "COPPICE_SERVE_", {"print-config"}); }

  CLI::App app_{"test", "test"};
  int port_ = 8080;
  std::string host_ = "127.0.0.1", key_;
  std::vector<std::string> models_;
  bool packed_ = false, print_ = false;
};

TEST_F(SettingsOf, WhatIsTypedWinsOverTheEnvironmentAndThatOverTheFile) {
  type("--port 1");
  Settings all = settings();
  ASSERT_TRUE(all.read_environment({"COPPICE_SERVE_PORT=2", "COPPICE_SERVE_HOST=::1", "PORT=9"}));
  ASSERT_TRUE(all.read_file(R"({"port": 3, "host": "0.0.0.0", "model": ["a", "b=c"], "packed-cache": true})",
                            "f.json"));
  EXPECT_EQ(port_, 1);
  EXPECT_EQ(host_, "::1");
  EXPECT_EQ(models_, (std::vector<std::string>{"a", "b=c"}));
  EXPECT_TRUE(packed_);
}

TEST_F(SettingsOf, TheEnvironmentSeparatesSeveralValues) {
  type("");
  ASSERT_TRUE(
      settings().read_environment({"COPPICE_SERVE_MODEL=a=x, y;b", "COPPICE_SERVE_PACKED_CACHE=true"}));
  EXPECT_EQ(models_, (std::vector<std::string>{"a=x, y", "b"}));
  EXPECT_TRUE(packed_);
}

TEST_F(SettingsOf, UnknownNamesAreRefusedByName) {
  type("");
  EXPECT_EQ(settings().read_environment({"COPPICE_SERVE_PROT=1"}).error().message,
            "COPPICE_SERVE_PROT: there is no option --prot");
  EXPECT_EQ(settings().read_file(R"({"prot": 1})", "f.json").error().message,
            "f.json: there is no option \"prot\"; --help lists them");
  EXPECT_FALSE(settings().read_file(R"({"print-config": true})", "f.json"));
}

TEST_F(SettingsOf, WhatIsWrongIsSaidWithItsPlace) {
  type("");
  EXPECT_EQ(settings().read_file("[1]", "f.json").error().message.find("f.json is no JSON object"), 0u);
  EXPECT_EQ(settings().read_file(R"({"port": [1, 2]})", "f.json").error().message,
            "f.json: \"port\" is array; one text, number, true or false is wanted");
  EXPECT_EQ(settings().read_file(R"({"port": 70000})", "f.json").error().message.find("f.json: \"port\": "),
            0u);
  EXPECT_EQ(
      settings().read_environment({"COPPICE_SERVE_PORT=x"}).error().message.find("COPPICE_SERVE_PORT: "), 0u);
  EXPECT_FALSE(settings().read_file(R"({"host": null})", "f.json"));
  EXPECT_EQ(settings().read_file(R"({"port": 8000.5})", "f.json").error().message,
            "f.json: \"port\": 8000.5 is no whole number; one from 0 to 65535 is wanted");
  EXPECT_EQ(settings().read_environment({"COPPICE_SERVE_PORT=many"}).error().message,
            "COPPICE_SERVE_PORT: many is no whole number; one from 0 to 65535 is wanted");
}

TEST_F(SettingsOf, AFileSaysANameOnceAndNamesNoOtherFile) {
  type("");
  EXPECT_EQ(settings().read_file(R"({"port": 1, "port": 2})", "f.json").error().message,
            "f.json: \"port\" is there twice; once is right");
  EXPECT_FALSE(settings().read_file(R"({"config": "g.json"})", "f.json"));
  EXPECT_EQ(
      settings().read_file("{\n\"port\": }", "f.json").error().message.find("f.json: parse error at line 2"),
      0u);
  ASSERT_TRUE(settings().read_file(R"({"port": 8000.0})", "f.json"));
  EXPECT_EQ(port_, 8000);
}

TEST_F(SettingsOf, WhatIsPrintedReadsBackAndHasNoSecrets) {
  type("--port 1 -m a -m b --api-key hidden");
  const std::string printed = settings().print({"api-key"});
  EXPECT_EQ(printed.find("hidden"), std::string::npos);
  EXPECT_NE(printed.find("\"port\": 1"), std::string::npos) << printed;
  EXPECT_NE(printed.find("\"packed-cache\": false"), std::string::npos) << printed;
  app_.clear();
  port_ = 0;
  models_.clear();
  type("");
  ASSERT_TRUE(settings().read_file(printed, "printed.json"));
  EXPECT_EQ(port_, 1);
  EXPECT_EQ(models_, (std::vector<std::string>{"a", "b"}));
}

}  // namespace
}  // namespace coppice::serve
