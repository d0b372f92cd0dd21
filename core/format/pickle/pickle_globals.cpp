#include "core/format/pickle/pickle_globals.hpp"

#include <algorithm>

#include "reprise/error.hpp"

namespace reprise::pickle {
namespace {

constexpr std::size_t kUnlistedNamesMax = 64;
constexpr std::size_t kAttributeMax = 256;  // same limit as for a class's name
constexpr std::size_t kShown = 64;  // number of characters of an attribute's name shown in messages

bool one_letter_off(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  std::size_t off = 0;
  for (std::size_t i = 0; i < a.size() && off < 2; ++i) off += a[i] != b[i] ? 1U : 0U;
  return off == 1;
}

/// True if the name differs in one byte from a listed name. Such a name is reported as damage, not
/// as an attempt to use an unlisted name.
bool garbled(const GlobalName& name) {
  const auto all = all_names();
  return std::any_of(all.begin(), all.end(), [&](const NameRule& listed) {
    return (listed.module == name.module && one_letter_off(listed.name, name.name)) ||
           (listed.name == name.name && one_letter_off(listed.module, name.module));
  });
}

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
  if (global.rule == nullptr) {
    if (grammar_ != Grammar::kBytesItem && garbled(global)) {
      input_.fail(Code::kTornFile, full_name(global) + " is a name with a wrong letter: garbled");
    }
    unlisted(full_name(global));
  }
  const NodeId node = graph_.add_name(global);
  loaded_.emplace(written, node);
  return node;
}

void Globals::unlisted(const std::string& name) {
  if (unlisted_.size() < kUnlistedNamesMax) unlisted_.insert(name);
  not_interpreted(Code::kUnsupported,
                  "it names " + name + ", which is not on the list of what is read");
}

void Globals::not_interpreted(Code code, std::string reason) {
  if (grammar_ != Grammar::kBytesItem) input_.fail(code, std::move(reason));
  if (reason_.empty()) reason_ = std::move(reason);
}

void Globals::check_parts(std::span<const NodeId> items) const {
  for (const NodeId item : items) {
    if (is_getattr(item)) {
      input_.fail(Code::kRefusedName, "builtins.getattr is refused but where it is called");
    }
  }
}

void Globals::check_unused(NodeId target) {
  if (!graph_.settled(target)) return;
  not_interpreted(Code::kTornFile, "what a call, a state or a key had used is changed later: " +
                                       std::string(name_of(graph_.kind(target))));
}

void Globals::torn(const char* what) const {
  input_.fail(Code::kTornFile, std::string(what) + ": garbled");
}

void Globals::misuse(NodeId name, std::string_view how) {
  if (graph_.kind(name) != Kind::kName) torn("a class is expected where another value stands");
  not_interpreted(Code::kRefusedName,
                  full_name(graph_.global(name)) + " may not be " + std::string(how));
}

NodeId Globals::instance(NodeId callee, NodeId args, bool called) {
  if (graph_.kind(callee) != Kind::kName) check_called(callee);
  if (graph_.kind(args) != Kind::kTuple) torn("arguments that are no tuple");
  const NameRule* rule = graph_.kind(callee) == Kind::kName ? graph_.global(callee).rule : nullptr;
  NamePath reached;
  if (rule != nullptr) {
    const Args shape = called ? rule->call : rule->fresh;
    if (shape == Args::kEnumMember) {
      reached = attribute(args);
    } else if (shape == Args::kNever) {
      misuse(callee, called ? "called" : "made by NEWOBJ");
    } else if (!args_fit(shape, args)) {
      misuse(callee, "given these arguments");
    }
  }
  graph_.settle(args);
  const bool hashable = rule == nullptr || !rule->changeable();
  const NodeId made =
      graph_.add_instance({.called = called, .type = callee, .args = args}, hashable);
  if (!reached.module.empty()) reached_.emplace(made, std::move(reached));
  return made;
}

/// Checks a call whose callee is not a name. Pickles of nested classes and methods contain calls of
/// what an earlier call of getattr or of an unlisted class returned. Such a call makes a bytes item
/// opaque; any other pickle that contains it is refused. Any other callee is refused in every
/// pickle.
void Globals::check_called(NodeId callee) {
  const bool returned = graph_.kind(callee) == Kind::kInstance;
  if (!returned || (rule_of_type(callee) != nullptr && !is_getattr(graph_.instance(callee).type))) {
    input_.fail(Code::kRefusedName,
                std::string(name_of(graph_.kind(callee))) + " is called; only listed names may be");
  }
  graph_.settle(callee);
  not_interpreted(Code::kUnsupported, "it calls what another call returned");
}

bool Globals::args_fit(Args shape, NodeId args) const {
  const auto items = graph_.tuple(args);
  switch (shape) {
    case Args::kNever:
    case Args::kEnumMember:
      return false;
    case Args::kEmpty:
      return items.empty();
    case Args::kText:
      return items.size() == 1 && graph_.all_are(args, Kind::kText);
    case Args::kScalar:
      return items.size() == 1 &&
             (graph_.all_are(args, Kind::kText) || graph_.all_are(args, Kind::kInteger));
    case Args::kExtents:
      return items.size() == 1 && graph_.kind(items[0]) == Kind::kTuple &&
             graph_.all_are(items[0], Kind::kInteger);
    case Args::kTexts:
      return graph_.all_are(args, Kind::kText);
    case Args::kAny:
      return true;
  }
  return false;
}

NamePath Globals::path_of(NodeId object) const {
  if (graph_.kind(object) == Kind::kName) {
    return {graph_.global(object).module, std::string(graph_.global(object).name)};
  }
  const auto reached = reached_.find(object);
  return reached == reached_.end() ? NamePath{} : reached->second;
}

const NamePath& Globals::attribute(NodeId args) {
  const auto known = attributes_.find(args);
  if (known != attributes_.end()) return known->second;
  return attributes_.emplace(args, check_attribute(args)).first->second;
}

NamePath Globals::check_attribute(NodeId args) {
  const auto items = graph_.tuple(args);
  const bool named = items.size() >= 2 && graph_.kind(items[1]) == Kind::kText &&
                     graph_.text(items[1]).size() <= kAttributeMax;
  if (!named) {
    input_.fail(Code::kRefusedName, "builtins.getattr is refused without the name of an attribute");
  }
  const std::string member(graph_.text(items[1]));
  NamePath path = path_of(items[0]);
  const bool by_name = !path.module.empty();
  path.attributes += (by_name ? "." : "") + member;
  const std::string whole =
      by_name ? std::string(path.module) + "." + path.attributes
              : member.substr(0, kShown) + " of " + std::string(name_of(graph_.kind(items[0])));
  if (path.attributes.size() > kAttributeMax || leads_to_code(member) ||
      (by_name && always_refused(path.module, path.attributes))) {
    input_.fail(Code::kRefusedName, "builtins.getattr is refused of " + whole);
  }
  const NameRule* rule =
      graph_.kind(items[0]) == Kind::kName ? graph_.global(items[0]).rule : nullptr;
  const bool member_of_enum = rule != nullptr && rule->call == Args::kScalar && items.size() == 2 &&
                              enum_value(rule->module, rule->name, member);
  if (!member_of_enum) unlisted(whole);
  return path;
}

bool Globals::is_getattr(NodeId node) const {
  if (graph_.kind(node) != Kind::kName) return false;
  const NameRule* rule = graph_.global(node).rule;
  return rule != nullptr && rule->call == Args::kEnumMember;
}

const NameRule* Globals::rule_of_type(NodeId instance) const {
  const NodeId type = graph_.instance(instance).type;
  return graph_.kind(type) == Kind::kName ? graph_.global(type).rule : nullptr;
}

void Globals::build(NodeId target, NodeId state) {
  if (graph_.kind(target) != Kind::kInstance) torn("BUILD of what is no object");
  check_unused(target);
  Instance& instance = graph_.instance(target);
  if (instance.state != kNoNode) not_interpreted(Code::kTornFile, "an object is built twice");
  if (const NameRule* rule = rule_of_type(target); rule != nullptr) {
    const Kind kind = graph_.kind(state);
    const bool fits = rule->state == BuildState::kAny ||
                      (rule->state == BuildState::kDict && kind == Kind::kDict) ||
                      (rule->state == BuildState::kTuple && kind == Kind::kTuple);
    if (!fits) misuse(instance.type, "given this state");
  }
  graph_.settle(state);
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
