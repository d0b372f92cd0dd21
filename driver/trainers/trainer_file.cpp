#include "driver/trainers/trainer_file.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include "core/base/print.hpp"
#include "driver/yaml/yaml_map.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kTrainerRanksMax = 64;
constexpr std::int64_t kTrainerSecondsMax = 3600;
constexpr const char* kTrainerFile = "trainer.yaml";
constexpr const char* kTrainers = "trainers";
constexpr std::int64_t kTrainerKeepsMax = 1'000'000;
constexpr std::array<std::string_view, 1> kTrainerFaults = {"rerun"};
constexpr std::array<std::string_view, 4> kTrainerActions = {"train", "save", "load", "finalize"};

std::vector<std::string> required_texts(YamlMap& map, const char* key) {
  if (!map.has(key)) map.required(key);
  return map.texts(key);
}

void read_options(YamlMap options, TrainerFile& trainer) {
  for (const auto& name : options.keys()) {
    trainer.options.push_back({name, options.texts(name)});
    if (trainer.options.back().values.empty()) {
      options.fail(options.node(name), "allows no value of the option '" + name + "'");
    }
  }
}

fs::path folder_of(const std::string& name, const std::string& file, const std::string& trainers) {
  const auto there = [&](const fs::path& folder) { return fs::exists(folder / kTrainerFile); };
  if (!trainers.empty()) return fs::absolute(fs::path(trainers) / name);
  for (fs::path above = fs::absolute(file).parent_path();; above = above.parent_path()) {
    if (there(above / kTrainers / name)) return above / kTrainers / name;
    if (above == above.parent_path()) break;
  }
  return fs::absolute(fs::path(kTrainers) / name);
}

}  // namespace

std::string_view name_of(GoesOn goes_on) {
  return goes_on == GoesOn::kBitwise ? "bitwise" : "like_control";
}

std::int64_t TrainerFile::world_of(const std::map<std::string, std::int64_t>& layout) const {
  std::int64_t world = 1;
  for (const auto& [axis, size] : layout) {
    if (std::find(inside.begin(), inside.end(), axis) == inside.end()) world *= size;
  }
  return world;
}

TrainerFile parse_trainer(const std::string& text, const std::string& file) try {
  YamlMap map(load_yaml(text, file), file, "the trainer");
  TrainerFile trainer;
  trainer.folder = fs::absolute(file).parent_path().lexically_normal().string();
  trainer.name = map.required("name");
  trainer.about = map.required("about");
  trainer.command = required_texts(map, "command");
  trainer.axes = required_texts(map, "axes");
  trainer.inside = map.texts("inside");
  trainer.ranks = map.integer_in("ranks", 1, kTrainerRanksMax).value_or(1);
  trainer.goes_on =
      map.one_of("goes_on", {GoesOn::kBitwise, GoesOn::kLikeControl}).value_or(GoesOn::kBitwise);
  trainer.actions = map.words("actions", kTrainerActions);
  trainer.phases = map.texts("phases");
  trainer.faults = map.words("faults", kTrainerFaults);
  trainer.keeps = map.integer_in("keeps", 1, kTrainerKeepsMax);
  if (map.has("exits")) trainer.exits = map.integers("exits");
  trainer.seconds = map.integer_in("seconds", 1, kTrainerSecondsMax).value_or(trainer.seconds);
  if (map.has("needs")) {
    YamlMap needs = map.map("needs");
    for (const auto& package : needs.keys()) trainer.needs[package] = needs.required(package);
  }
  if (map.has("options")) read_options(map.map("options"), trainer);
  for (const char* known : {"needs", "options", "exits"}) map.know(known);
  map.refuse_unknown();
  return trainer;
} catch (const Error& error) {
  throw error.within({.file = file});
}

TrainerFile read_trainer(const std::string& name, const std::string& file,
                         const std::string& trainers) {
  const bool plain = !name.empty() && name.front() != '.' && name.find('/') == std::string::npos;
  const fs::path path = folder_of(name, file, trainers) / kTrainerFile;
  if (!plain || !fs::exists(path)) {
    throw Error(Code::kUsage, "there is no trainer '" + name + "': there is no " + path.string() +
                                  "; --trainers names the folder of the trainers");
  }
  TrainerFile trainer = parse_trainer(read_yaml_text(path.string()), path.string());
  if (trainer.name == name) return trainer;
  throw Error(Code::kUsage, "says that its name is '" + trainer.name + "'",
              {.file = path.string()});
}

}  // namespace reprise::driver
