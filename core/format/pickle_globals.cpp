#include "core/format/pickle_globals.hpp"

#include <algorithm>

#include "core/base/error.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kUnlistedNamesMax = 64;

std::string full_name(const GlobalName& name) {
  return std::string(name.module) + "." + std::string(name.name);
}

}  // namespace

NodeId Globals::load(std::string_view module, std::string_view name) {
  const std::pair written{module, name};
  if (const auto found = loaded_.find(written); found != loaded_.end()) return found->second;
  const ModuleAndName known =
      protocol_ <= 2 ? modern_name({module, name}) : ModuleAndName{module, name};
  GlobalName global{known.module, known.name, rule_of(known.module, known.name)};
  if (global.rule == nullptr && always_refused(known.module, known.name)) {
    input_.fail(Code::kRefusedName, full_name(global) +
                                        " is refused: no checkpoint needs it. "
                                        "Treat this file as hostile");
  }
  if (global.rule != nullptr && !global.rule->allowed_in(grammar_)) global.rule = nullptr;
  if (global.rule == nullptr) unlisted(full_name(global));
  const NodeId node = graph_.add_name(global);
  loaded_.emplace(written, node);
  return node;
}

void Globals::unlisted(const std::string& name) {
  if (grammar_ != Grammar::kBytesItem) {
    input_.fail(Code::kRefusedName, name + " is not among the names that may stand here");
  }
  if (unlisted_.size() < kUnlistedNamesMax) unlisted_.insert(name);
  make_opaque("it names " + name + ", which is not on the list");
}

void Globals::make_opaque(std::string reason) {
  if (reason_.empty()) reason_ = std::move(reason);
}

void Globals::torn(const char* what) const {
  input_.fail(Code::kTornFile, std::string(what) + ": garbled");
}

void Globals::misuse(NodeId name, std::string_view how) {
  if (graph_.kind(name) != Kind::kName) torn("a class is expected where another value stands");
  const std::string what = full_name(graph_.global(name)) + " may not be " + std::string(how);
  if (grammar_ != Grammar::kBytesItem) input_.fail(Code::kRefusedName, what);
  make_opaque(what);
}

NodeId Globals::instance(NodeId callee, NodeId args, bool called) {
  if (graph_.kind(callee) != Kind::kName) {
    input_.fail(Code::kRefusedName,
                std::string(name_of(graph_.kind(callee))) + " is called; only listed names may be");
  }
  if (graph_.kind(args) != Kind::kTuple) torn("arguments that are no tuple");
  if (const NameRule* rule = graph_.global(callee).rule; rule != nullptr) {
    const Args shape = called ? rule->call : rule->fresh;
    if (shape == Args::kEnumMember) {
      check_enum_member(args);
    } else if (shape == Args::kNever) {
      misuse(callee, called ? "called" : "made by NEWOBJ");
    } else if (!args_fit(shape, args)) {
      misuse(callee, "given these arguments");
    }
  }
  return graph_.add_instance({.called = called, .type = callee, .args = args});
}

bool Globals::args_fit(Args shape, NodeId args) const {
  const auto items = graph_.tuple(args);
  const auto all_of = [this](std::span<const NodeId> nodes, Kind kind) {
    return std::all_of(nodes.begin(), nodes.end(),
                       [&](NodeId node) { return graph_.kind(node) == kind; });
  };
  switch (shape) {
    case Args::kNever:
    case Args::kEnumMember:
      return false;
    case Args::kEmpty:
      return items.empty();
    case Args::kText:
      return items.size() == 1 && all_of(items, Kind::kText);
    case Args::kScalar:
      return items.size() == 1 && (all_of(items, Kind::kText) || all_of(items, Kind::kInteger));
    case Args::kExtents:
      return items.size() == 1 && graph_.kind(items[0]) == Kind::kTuple &&
             all_of(graph_.tuple(items[0]), Kind::kInteger);
    case Args::kTexts:
      return all_of(items, Kind::kText);
    case Args::kAny:
      return true;
  }
  return false;
}

void Globals::check_enum_member(NodeId args) {
  const auto items = graph_.tuple(args);
  if (items.size() != 2 || graph_.kind(items[0]) != Kind::kName ||
      graph_.kind(items[1]) != Kind::kText) {
    input_.fail(Code::kRefusedName, "builtins.getattr is refused except for members of enums");
  }
  const GlobalName& type = graph_.global(items[0]);
  const std::string_view member = graph_.text(items[1]);
  if (type.rule == nullptr || type.rule->call != Args::kScalar) {
    input_.fail(Code::kRefusedName, "builtins.getattr is refused on " + full_name(type) +
                                        ", which is not among the known enums");
  }
  if (!enum_value(type.module, type.name, member)) {
    unlisted(full_name(type) + "." + std::string(member.substr(0, 64)));
  }
}

const NameRule* Globals::rule_of_type(NodeId instance) const {
  return graph_.global(graph_.instance(instance).type).rule;
}

void Globals::build(NodeId target, NodeId state) {
  if (graph_.kind(target) != Kind::kInstance) torn("BUILD of what is no object");
  Instance& instance = graph_.instance(target);
  if (instance.state != kNoNode) torn("an object is built twice");
  if (const NameRule* rule = rule_of_type(target); rule != nullptr) {
    const Kind kind = graph_.kind(state);
    const bool fits = rule->state == State::kAny ||
                      (rule->state == State::kDict && kind == Kind::kDict) ||
                      (rule->state == State::kTuple && kind == Kind::kTuple);
    if (!fits) misuse(instance.type, "given this state");
  }
  instance.state = state;
}

void Globals::extend_list(NodeId target, std::span<const NodeId> items) {
  if (graph_.kind(target) != Kind::kInstance) torn("APPEND to what is no list");
  Instance& instance = graph_.instance(target);
  const NameRule* rule = rule_of_type(target);
  if (rule != nullptr && rule->items != Items::kList) misuse(instance.type, "appended to");
  graph_.extend(instance.list_items, items);
}

void Globals::extend_dict(NodeId target, std::span<const NodeId> items) {
  if (graph_.kind(target) != Kind::kInstance) torn("SETITEM of what is no dict");
  Instance& instance = graph_.instance(target);
  const NameRule* rule = rule_of_type(target);
  if (rule != nullptr && rule->items != Items::kDict) misuse(instance.type, "given items");
  graph_.extend(instance.dict_items, items);
}

void Globals::check_storage(NodeId id) const {
  if (grammar_ == Grammar::kMetadata) {
    input_.fail(Code::kRefusedName, "opcode BINPERSID refers to something outside the pickle");
  }
  bool fits = graph_.kind(id) == Kind::kTuple;
  if (fits) {
    const auto items = graph_.tuple(id);
    fits = items.size() == 5 && graph_.kind(items[0]) == Kind::kText &&
           graph_.text(items[0]) == "storage" && graph_.kind(items[1]) == Kind::kName &&
           graph_.kind(items[2]) == Kind::kText && graph_.kind(items[3]) == Kind::kText &&
           graph_.kind(items[4]) == Kind::kInteger;
  }
  if (!fits) input_.fail(Code::kRefusedName, "opcode BINPERSID with what is no storage");
}

}  // namespace reprise::pickle
