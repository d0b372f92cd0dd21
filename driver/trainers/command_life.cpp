#include "driver/trainers/command_life.hpp"

#include <limits>

#include "driver/yaml/rows.hpp"

namespace reprise::driver {
namespace {

const Rows<CommandLife>& command_rows() {
  static const Rows<CommandLife> rows = {
      row("command", &CommandLife::command, &YamlMap::texts, Written::kAlways),
      row("exits", &CommandLife::exits, Whole{0, UINT8_MAX}),
      row("leaves", &CommandLife::leaves, Whole{0, INT64_MAX}),
      row("seconds", &CommandLife::seconds, Whole{1, INT32_MAX}),
  };
  return rows;
}

}  // namespace

CommandLife read_command_life(YamlMap map) {
  CommandLife life;
  read_rows(map, command_rows(), life);
  map.refuse_unknown();
  if (life.command.empty()) map.fail(map.node("command"), "needs the words of a 'command'");
  return life;
}

void put_command_life(YAML::Emitter& out, const CommandLife& life) {
  out << YAML::BeginMap << YAML::Key << "incarnation" << YAML::Value << YAML::Flow;
  put_map(out, command_rows(), life);
  out << YAML::EndMap;
}

}  // namespace reprise::driver
