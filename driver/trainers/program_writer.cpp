#include "driver/trainers/program_writer.hpp"

#include "driver/trainers/command_step.hpp"

namespace reprise::driver {
namespace {

void put_layout_of(YAML::Emitter& out, const ProgramLife& life) {
  out << YAML::Key << "layout" << YAML::Value << YAML::Flow << YAML::BeginMap;
  for (const auto& [axis, size] : life.layout) {
    if (size > 1) out << YAML::Key << axis << YAML::Value << size;
  }
  out << YAML::EndMap;
  if (life.options.empty()) return;
  out << YAML::Key << "options" << YAML::Value << YAML::Flow << YAML::BeginMap;
  for (const auto& [name, value] : life.options) out << YAML::Key << name << YAML::Value << value;
  out << YAML::EndMap;
}

void put_step(YAML::Emitter& out, const ProgramStep& step) {
  const std::string word(name_of(step.does));
  if (step.does == ProgramDoes::kTrain) {
    out << YAML::BeginMap << YAML::Key << word << YAML::Value << step.steps << YAML::EndMap;
  } else if (step.async) {
    out << YAML::BeginMap << YAML::Key << word << YAML::Value << YAML::Flow << YAML::BeginMap;
    out << YAML::Key << "async" << YAML::Value << *step.async << YAML::EndMap << YAML::EndMap;
  } else {
    out << word;
  }
}

/// Writes the steps of a life. A kill is written in place of the save or load in which it happens.
void put_life_steps(YAML::Emitter& out, const ProgramLife& life) {
  if (life.rerun) {
    out << YAML::BeginMap << YAML::Key << "fault" << YAML::Value << YAML::Flow << YAML::BeginMap
        << YAML::Key << "rerun" << YAML::Value << YAML::BeginMap << YAML::Key << "iteration"
        << YAML::Value << life.rerun->iteration << YAML::Key << "kind" << YAML::Value
        << std::string(name_of(life.rerun->kind));
    if (life.rerun->rank) out << YAML::Key << "rank" << YAML::Value << *life.rerun->rank;
    out << YAML::EndMap << YAML::EndMap << YAML::EndMap;
  }
  const std::size_t kept = life.kill && !life.steps.empty() ? 1 : 0;
  for (std::size_t i = 0; i + kept < life.steps.size(); ++i) put_step(out, life.steps[i]);
  if (life.kill) {
    out << YAML::BeginMap << YAML::Key << "kill" << YAML::Value << YAML::Flow << YAML::BeginMap
        << YAML::Key << "rank" << YAML::Value << life.kill->rank << YAML::Key << "phase"
        << YAML::Value << life.kill->phase << YAML::Key << "occurrence" << YAML::Value
        << life.kill->occurrence << YAML::EndMap << YAML::EndMap;
  }
  if (life.exit != 0) {
    out << YAML::BeginMap << YAML::Key << "exit" << YAML::Value << life.exit << YAML::EndMap;
  }
}

void put_program_expect(YAML::Emitter& out, const ProgramExpectation& expect) {
  out << YAML::Key << "expect" << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "max_delta" << YAML::Value << 0;
  out << YAML::Key << "goes_on" << YAML::Value << std::string(name_of(expect.goes_on));
  if (expect.loaded_step) {
    out << YAML::Key << "loaded_step" << YAML::Value << *expect.loaded_step;
  }
  if (expect.loss_within != kLossWithin) {
    out << YAML::Key << "loss_within" << YAML::Value << expect.loss_within;
  }
  if (expect.fails) {
    out << YAML::Key << "fails" << YAML::Value << std::string(name_of(*expect.fails));
  }
  if (!expect.says.empty()) out << YAML::Key << "says" << YAML::Value << expect.says;
  if (!expect.unwitnessed.empty()) {
    out << YAML::Key << "unwitnessed" << YAML::Value << YAML::BeginSeq;
    for (const auto& prefix : expect.unwitnessed) out << prefix;
    out << YAML::EndSeq;
  }
  out << YAML::EndMap;
}

}  // namespace

void put_program(YAML::Emitter& out, const ProgramPlan& plan) {
  out << YAML::Key << "trainer" << YAML::Value << YAML::Flow << YAML::BeginMap;
  out << YAML::Key << "name" << YAML::Value << plan.trainer.name;
  put_layout_of(out, plan.lives.front());
  if (!plan.needs.empty()) {
    out << YAML::Key << "needs" << YAML::Value << YAML::Flow << YAML::BeginMap;
    for (const auto& [package, version] : plan.needs) {
      out << YAML::Key << package << YAML::Value << version;
    }
    out << YAML::EndMap;
  }
  out << YAML::Key << "seed" << YAML::Value << plan.seed << YAML::EndMap;
  out << YAML::Key << "steps" << YAML::Value << YAML::BeginSeq;
  for (std::size_t i = 0; i < plan.lives.size(); ++i) {
    if (plan.lives[i].command) {
      put_command_life(out, *plan.lives[i].command);
    } else if (i > 0) {
      out << YAML::BeginMap << YAML::Key << "restart" << YAML::Value << YAML::Flow
          << YAML::BeginMap;
      put_layout_of(out, plan.lives[i]);
      out << YAML::EndMap << YAML::EndMap;
    }
    put_life_steps(out, plan.lives[i]);
  }
  out << YAML::EndSeq;
  put_program_expect(out, plan.expect);
}

}  // namespace reprise::driver
