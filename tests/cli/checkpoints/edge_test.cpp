// Tests the output of the program. Keys, paths and values from a file must not act as commands to
// the terminal. If part of the output can't be written, the exit code must show it. An
// out-of-memory error must name the file, and a signal ends the program.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "cli/frame/interrupts.hpp"
#include "cli/output/plain_text.hpp"
#include "core/format/bytes_item.hpp"
#include "tests/program/damage.hpp"
#include "tests/program/run_program.hpp"

namespace reprise::test::edge_test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

constexpr const char* kFixture = "torch_2.15.0/same_content_a";
const std::string kGood = std::string(REPRISE_TEST_DATA) + "/" + kFixture;
/// A key with terminal codes that erase the line and print a false verdict, a mark that reverses
/// the writing direction, a C1 code, and an incomplete character.
const std::string kEvil = "w\x1b[2K\rwhole\nsame\x7f\xc2\x9b\xe2\x80\xae\xed\xb2\x80";
const std::string kShown = "w\\x1b[2K\\x0dwhole\\nsame\\x7f\\x9b\\u202e\\udc80";

bool is_plain(const std::string& text) {
  const auto is_control = [](char c) { return (c >= 0 && c < ' ' && c != '\n') || c == '\x7f'; };
  return std::none_of(text.begin(), text.end(), is_control) &&
         text.find("\xc2\x9b") == std::string::npos &&
         text.find("\xe2\x80\xae") == std::string::npos;
}

/// Adds a tensor and an object whose keys are kEvil.
void spoil(const Victim& victim) {
  victim.edit_metadata([](Metadata& metadata) {
    metadata.catalog.tensors.front().key = kEvil;
    metadata.catalog.objects.push_back({kEvil + "o", 0, {0, 9}});
  });
}

TEST(Edge, keys_reach_a_terminal_as_text_by_every_verb) {
  const Victim victim(kFixture);
  spoil(victim);
  const std::string out = victim.path() + "_out";
  for (const Words& words :
       {Words{"verify", victim.path()}, Words{"verify", "--json", victim.path()},
        Words{"inspect", victim.path()},
        Words{"inspect", "--chunks", "--digest", "--sha256", victim.path()},
        Words{"inspect", "--json", "--values", victim.path()}, Words{"diff", victim.path(), kGood},
        Words{"diff", "--json", victim.path(), kGood}, Words{"reshard", victim.path(), out},
        Words{"verify", victim.path() + "/" + kEvil}, Words{kEvil}, Words{"verify", "--" + kEvil},
        Words{"run", kEvil}, Words{"gate", kEvil, "--baseline", kEvil},
        Words{"plan", "--model", kEvil, "--layout", kEvil}}) {
    const auto result = run_program(words);
    SCOPED_TRACE(words.front() + ": " + result.all());
    EXPECT_TRUE(is_plain(result.all()));
    const bool json = std::find(words.begin(), words.end(), "--json") != words.end();
    if (json) {
      EXPECT_TRUE(Json::parse(result.out).is_object());
    }
  }
  EXPECT_THAT(run_program({"inspect", victim.path()}).all(), HasSubstr("\n" + kShown));
}

TEST(Edge, keys_reach_the_report_for_ci_as_xml) {
  const Victim victim(kFixture);
  victim.edit_metadata([](Metadata& metadata) { metadata.catalog.tensors.front().key = kEvil; });
  const std::string report = victim.path() + "_report";
  const auto result =
      run_program({"diff", "--keys", "whole", victim.path(), kGood, "--report", report});
  EXPECT_EQ(result.exit_code, 1) << result.all();
  std::ostringstream junit;
  junit << std::ifstream(report + "/junit.xml").rdbuf();
  EXPECT_THAT(junit.str(), HasSubstr("w\\x1b[2K\\x0dwhole&#10;same\\x7f"));
  EXPECT_TRUE(is_plain(junit.str()));
}

TEST(Edge, text_is_passed_on_by_lines_and_whole_however_it_is_written) {
  std::ostringstream sink;
  cli::PlainText text(sink);
  std::ostream out(&text);
  EXPECT_FALSE(text.used());
  for (const char c : std::string("\xc3\xa4\x1b")) out.put(c);
  EXPECT_EQ(sink.str(), "");
  out << "b\nc";
  EXPECT_EQ(sink.str(),
            "\xc3\xa4\\x1b"
            "b\n");
  out << std::flush;
  EXPECT_EQ(sink.str(),
            "\xc3\xa4\\x1b"
            "b\nc");
  EXPECT_TRUE(text.used());
}

TEST(Edge, output_that_does_not_arrive_is_exit_5_for_every_verb) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "needs /dev/full";
  const Victim victim(kFixture);
  const std::string scenario = REPRISE_SOURCE_DIR "/scenarios/placements/ep2.yaml";
  for (const Words& words :
       {Words{"--help"}, Words{"--version"}, Words{"verify", "--help"}, Words{"verify", kGood},
        Words{"verify", "--json", kGood}, Words{"inspect", kGood},
        Words{"inspect", "--json", kGood}, Words{"diff", kGood, kGood},
        Words{"diff", "--json", kGood, kGood}, Words{"reshard", kGood, victim.path() + "_out"},
        Words{"mutants", "--list"}, Words{"plan", "--model", "gpt-tiny", "--layout", "tp=2"},
        Words{"run", scenario}}) {
    const auto result = run_program(words, {.out = "/dev/full"});
    EXPECT_EQ(result.exit_code, 5) << words.front();
    EXPECT_THAT(result.err, HasSubstr("standard output is full or closed")) << words.front();
  }
}

TEST(Edge, report_that_does_not_arrive_is_exit_2) {
  const Victim victim(kFixture);
  const auto result = run_program({"verify", kGood, "--report", victim.file(".metadata").string()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
}

TEST(Edge, too_little_memory_is_told_by_the_file_that_asks_for_it) {
  if (!kAddressSpaceLimited) GTEST_SKIP() << "a sanitizer reserves more addresses than any limit";
  constexpr std::uint64_t kBytes = std::uint64_t{1} << 30U;
  const Victim victim(kFixture);
  std::ofstream(victim.file("big.distcp")).close();
  fs::resize_file(victim.file("big.distcp"), kBytes);
  victim.edit_metadata([](Metadata& metadata) {
    metadata.catalog.files.emplace_back("big.distcp");
    const auto file = static_cast<FileIndex>(metadata.catalog.files.size() - 1);
    metadata.catalog.objects.push_back({"big", file, {0, kBytes}});
  });
  const RunLimits limits{.address_space_bytes = kBytes};
  const auto result = run_program({"inspect", "--json", "--values", victim.path()}, limits);
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("LIMIT: there is not enough memory to hold 1.00 GiB"));
  EXPECT_THAT(result.err, HasSubstr("big.distcp]"));
  const Json error = Json::parse(result.out)["error"];
  EXPECT_EQ(error["code"], "LIMIT");
  EXPECT_EQ(error["file"], victim.file("big.distcp").string());
}

TEST(Edge, object_that_is_refused_is_named_and_the_rest_is_shown) {
  const Victim victim(kFixture);
  const Bytes item = write_bytes_item(Value(Name{"os", "system"}));
  victim.write("bad.distcp", as_text(item));
  victim.edit_metadata([&item](Metadata& metadata) {
    metadata.catalog.files.emplace_back("bad.distcp");
    const auto file = static_cast<FileIndex>(metadata.catalog.files.size() - 1);
    metadata.catalog.objects.insert(metadata.catalog.objects.begin(),
                                    {"bad", file, {0, item.size()}});
  });
  const auto result = run_program({"inspect", "--json", "--values", victim.path()});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("[key bad, file " + victim.file("bad.distcp").string()));
  std::size_t shown = 0;
  const Json document = Json::parse(result.out);
  for (const auto& object : document["objects"]) {
    if (object["key"] == "bad") {
      EXPECT_EQ(object["error"]["code"], "REFUSED_NAME");
    } else {
      shown += object.count("value") + object.count("opaque");
    }
  }
  EXPECT_GE(shown, 1U);
}

TEST(Edge, plan_that_is_too_large_is_refused_before_it_is_made) {
  const Victim victim(kFixture);
  victim.write("large.yaml", "gpt: {layers: 10000, hidden: 4096, ffn: 11008, vocabulary: 128256}");
  const auto result = run_program(
      {"plan", "--json", "--model", victim.file("large.yaml").string(), "--layout", "dp=65536"},
      {.seconds = 20, .address_space_bytes = std::uint64_t{1} << 30U});
  EXPECT_EQ(result.exit_code, 2) << result.all();
  EXPECT_THAT(result.err, HasSubstr("LIMIT: save: 70,004 parameters under dp=65536"));
  EXPECT_THAT(result.err, HasSubstr("plans are made for up to 100,000,000"));
  EXPECT_EQ(Json::parse(result.out)["error"]["code"], "LIMIT");
}

TEST(Edge, error_is_told_in_json_too) {
  const auto result = run_program({"inspect", "--json", kGood + "/nothing"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(Json::parse(result.out)["error"]["code"], "NOT_FOUND");
  const auto several = run_program({"verify", "--json", kGood, kGood + "/nothing"});
  EXPECT_EQ(several.exit_code, 2);
  const Json document = Json::parse(several.out);
  EXPECT_EQ(document["checkpoints"].size(), 1U);
  EXPECT_EQ(document["unread"][0]["error"]["code"], "NOT_FOUND");
}

TEST(Interrupts, a_signal_is_told_and_the_next_one_ends_the_program) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    const cli::Interrupts interrupts;
    EXPECT_FALSE(cli::Interrupts::came());
    std::raise(number);
    EXPECT_TRUE(cli::Interrupts::came());
    EXPECT_EXIT(std::raise(number), testing::KilledBySignal(number), "");
  }
}

}  // namespace
}  // namespace reprise::test::edge_test
