#include "driver/trainers/command_step.hpp"

#include <limits>

namespace reprise::driver {

CommandLife read_command_life(YamlMap map) {
  CommandLife life;
  life.command = map.texts("command");
  life.exits = static_cast<int>(map.integer_in("exits", 0, UINT8_MAX).value_or(0));
  life.leaves = map.integer_in("leaves", 0, INT64_MAX);
  life.seconds = map.integer_in("seconds", 1, INT32_MAX).value_or(life.seconds);
  map.refuse_unknown();
  if (life.command.empty()) map.fail(map.node("command"), "needs the words of a 'command'");
  return life;
}

void put_command_life(YAML::Emitter& out, const CommandLife& life) {
  out << YAML::BeginMap << YAML::Key << "incarnation" << YAML::Value << YAML::Flow
      << YAML::BeginMap;
  out << YAML::Key << "command" << YAML::Value << YAML::BeginSeq;
  for (const auto& word : life.command) out << word;
  out << YAML::EndSeq;
  if (life.exits != 0) out << YAML::Key << "exits" << YAML::Value << life.exits;
  if (life.leaves) out << YAML::Key << "leaves" << YAML::Value << *life.leaves;
  if (life.seconds != CommandLife().seconds) {
    out << YAML::Key << "seconds" << YAML::Value << life.seconds;
  }
  out << YAML::EndMap << YAML::EndMap;
}

}  // namespace reprise::driver
