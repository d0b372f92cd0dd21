// The input is the text of a scenario file or of a model file.

#include "driver/language/model_file.hpp"
#include "driver/language/scenario.hpp"
#include "driver/language/scenario_writer.hpp"
#include "tests/fuzz/seeds.hpp"

namespace reprise::fuzz {
namespace {

using namespace driver;

/// A scenario is written and read again only for this many rows of its table. More rows would find
/// nothing new.
constexpr std::size_t kRowsAgain = 16;

void check_scenario(Scenario scenario, const std::string& text) {
  scenario.row.clear();
  const std::string written = to_yaml(scenario);
  const Scenario again = parse_scenario(written, scenario.file);
  promise(again == scenario, "another scenario when written again:\n" + written);
  promise(to_yaml(again) == written, "written otherwise the second time:\n" + written);
  if (scenario.recorded) {
    const std::string recorded = with_record(text, *scenario.recorded);
    promise(with_record(recorded, *scenario.recorded) == recorded, "a record that piles up");
  }
}

Acceptance run(ByteSpan input) {
  const std::string text(as_text(input));
  const auto scenarios = read_or_refuse(0, [&] { return parse_scenarios(text, kFile); });
  if (scenarios) {
    promise(!scenarios->empty(), "no scenario and no refusal");
    for (std::size_t i = 0; i < std::min(scenarios->size(), kRowsAgain); ++i) {
      check_scenario((*scenarios)[i], text);
    }
  }
  const auto model = read_or_refuse(0, [&] { return parse_model(text, kFile); });
  return scenarios || model ? Acceptance::kAccepted : Acceptance::kRefused;
}

std::vector<Seed> seeds() {
  std::vector<Seed> files = files_below("scenarios", ".yaml");
  std::erase_if(files, [](const Seed& file) {  // longer tables are slow and find nothing new
    return parse_scenarios(std::string(as_text(file.bytes)), file.name).size() > kRowsAgain;
  });
  files.push_back({"gpt", to_bytes("gpt: {layers: 4, hidden: 64, ffn: 128, vocabulary: 512}\n")});
  files.push_back({"parameters", to_bytes("parameters:\n"
                                          "  - {key: w, shape: [50304, 4096], splits: [tp/0]}\n"
                                          "  - {key: b, shape: [4096]}\n")});
  return files;
}

const Target kTarget("scenario", run, seeds);

}  // namespace
}  // namespace reprise::fuzz
