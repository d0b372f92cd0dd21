#include "driver/lanes/command_run.hpp"

#include <filesystem>

#include "driver/lanes/scratch_directory.hpp"
#include "driver/yaml/text_file.hpp"

namespace reprise::driver {
namespace {

std::string replaced(std::string word, const std::string& name, const std::string& value) {
  for (auto at = word.find(name); at != std::string::npos;
       at = word.find(name, at + value.size())) {
    word.replace(at, name.size(), value);
  }
  return word;
}

}  // namespace

CommandEnd run_command(const CommandLife& life, const std::string& checkpoints,
                       const std::string& reprise) {
  const auto root = std::filesystem::absolute(checkpoints);
  std::filesystem::create_directories(root);
  std::vector<std::string> words;
  for (const auto& word : life.command) {
    words.push_back(replaced(replaced(word, "{checkpoints}", root.string()), "{reprise}", reprise));
  }
  const ScratchDirectory scratch;
  const std::string log = scratch.path() + "/log";
  CommandEnd end;
  end.process = run_process(words, log, {.deadline_s = static_cast<std::uint64_t>(life.seconds)});
  end.log = tail_of(log);
  return end;
}

std::string complaint_of(const CommandLife& life, const CommandEnd& end) {
  const std::string log = end.log.empty() ? "" : ": " + end.log;
  if (end.process.timed_out) {
    return "the command did not finish within " + std::to_string(life.seconds) +
           " s (its `seconds` in the scenario)" + log;
  }
  if (end.process.exit_code != life.exits) {
    return "the command should have ended with " + std::to_string(life.exits) + " but ended with " +
           std::to_string(end.process.exit_code) + log;
  }
  return end.process.left_some ? "the command ended but left processes behind" : "";
}

}  // namespace reprise::driver
