#include "core/format/pickle/pickle_globals.hpp"

#include <algorithm>
#include <utility>

#include "core/format/pickle/pickle_calls.hpp"
#include "core/format/pickle/pickle_imports.hpp"
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
  if (log_ != nullptr) {
    log_->add_name(known, input_.opcode_position());
    return loaded_.emplace(written, graph_.add_name(global)).first->second;
  }
  const std::string_view held =
      global.rule == nullptr ? held_for(known.module, known.name) : std::string_view{};
  if (global.rule == nullptr && held.empty() && always_refused(known.module, known.name)) {
    input_.fail(Code::kRefusedName, full_name(global) +
                                        " is refused: no checkpoint needs it. "
                                        "Treat this file as hostile");
  }
  if (global.rule != nullptr && !global.rule->allowed_in(grammar_)) global.rule = nullptr;
  if (!held.empty()) {
    const NodeId node = graph_.add_name(global);
    hold(node, held);
    loaded_.emplace(written, node);
    return node;
  }
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
                  "it names " + name + ", which is not on the list of allowed names");
}

void Globals::not_interpreted(Code code, std::string reason) {
  if (grammar_ != Grammar::kBytesItem) input_.fail(code, std::move(reason));
  if (reason_.empty()) reason_ = std::move(reason);
}

void Globals::check_parts(std::span<const NodeId> items) {
  for (const NodeId item : items) {
    if (!is_getattr(item)) continue;
    if (log_ != nullptr) {
      log_refused("builtins.getattr", "it is handed on, and reads attributes when it is called");
    } else {
      hold(item, "reads attributes");
    }
  }
}

void Globals::hold(NodeId name, std::string_view what) {
  const std::string full = full_name(graph_.global(name));
  if (grammar_ != Grammar::kBytesItem) {
    input_.fail(Code::kRefusedName, full +
                                        " is refused: no checkpoint needs it. "
                                        "Treat this file as hostile");
  }
  if (unlisted_.size() < kUnlistedNamesMax) unlisted_.insert(full);
  if (held_.empty()) {
    held_ = full;
    reason_ = "it holds " + full + ", which " + std::string(what) +
              " when it is called; unpickling it only imports it";
  }
  refuse_held();
}

void Globals::runs(const std::string& what) {
  if (runs_.empty()) runs_ = what;
  refuse_held();
}

void Globals::refuse_held() const {
  if (held_.empty() || runs_.empty()) return;
  input_.fail(Code::kRefusedName, held_ + " is refused beside a call of " + runs_ +
                                      ", which could call it. Treat this file as hostile");
}

/// True for callees that only make a value of what they are given and call none of it.
bool Globals::calls_nothing(NodeId callee) const {
  if (graph_.kind(callee) != Kind::kName) return false;
  const GlobalName& name = graph_.global(callee);
  if (name.rule != nullptr) return true;
  const std::string full = full_name(name);
  return full == "functools.partial" || full == "operator.itemgetter" ||
         full == "operator.attrgetter" || full == "operator.methodcaller" ||
         full == "_operator.attrgetter" || full == "_operator.methodcaller" ||
         full == "_operator.itemgetter" || full == "builtins.map" || full == "builtins.filter";
}

void Globals::check_unused(NodeId target) {
  if (!graph_.frozen(target)) return;
  graph_.set_unread(target);
  not_interpreted(Code::kTornFile,
                  "a value that a call, a state or a key has already used is changed later: " +
                      std::string(name_of(graph_.kind(target))));
}

void Globals::torn(const char* what) const {
  input_.fail(Code::kTornFile, std::string(what) + ": garbled");
}

void Globals::misuse(NodeId name, std::string_view how) {
  if (graph_.kind(name) != Kind::kName) torn("a class is expected, but there is another value");
  misused_ = true;
  not_interpreted(Code::kRefusedName,
                  full_name(graph_.global(name)) + " may not be " + std::string(how));
}

void Globals::log_refused(std::string name, std::string why) {
  log_->add({.name = std::move(name),
             .position = input_.opcode_position(),
             .standing = Standing::kRefused,
             .why = std::move(why)});
}

NodeId Globals::log_stacked(NodeId module, NodeId name) {
  const bool texts = graph_.kind(name) == Kind::kText && graph_.kind(module) == Kind::kText;
  if (texts) return load(graph_.text(module), graph_.text(name));
  log_refused("a name that the pickle computes", "only running it tells which one");
  return graph_.add_instance({}, true);
}

NodeId Globals::log_call(NodeId callee, NodeId args) {
  if (is_getattr(callee)) log_getattr(args);
  return graph_.add_instance({.called = true, .type = callee, .args = args}, true);
}

/// Logs what getattr reads, unless it is a member of a listed enum.
void Globals::log_getattr(NodeId args) {
  const auto items =
      graph_.kind(args) == Kind::kTuple ? graph_.tuple(args) : std::span<const NodeId>{};
  const bool named = items.size() == 2 && graph_.kind(items[0]) == Kind::kName &&
                     graph_.kind(items[1]) == Kind::kText;
  if (!named) {
    return log_refused("builtins.getattr", "it reads an attribute of what another call returned");
  }
  const GlobalName& of = graph_.global(items[0]);
  const std::string_view member = graph_.text(items[1]);
  const bool of_enum = of.rule != nullptr && of.rule->call == Args::kScalar;
  if (of_enum && enum_value(of.module, of.name, member)) return;
  log_->add_attribute({of.module, of.name}, member, input_.opcode_position());
}

NodeId Globals::instance(NodeId callee, NodeId args, bool called) {
  if (log_ != nullptr) return log_call(callee, args);
  if (graph_.kind(callee) != Kind::kName) check_called(callee);
  if (graph_.kind(args) != Kind::kTuple) torn("arguments that are not a tuple");
  const NameRule* rule = graph_.kind(callee) == Kind::kName ? graph_.global(callee).rule : nullptr;
  const bool plain = !called && (rule != nullptr || graph_.tuple(args).empty());
  if (!plain && !calls_nothing(callee)) {
    runs(graph_.kind(callee) == Kind::kName ? full_name(graph_.global(callee))
                                            : std::string("what another call returned"));
  }
  NamePath reached;
  if (rule != nullptr) {
    const Args shape = called ? rule->call : rule->fresh;
    if (shape == Args::kEnumMember) {
      reached = attribute(args);
    } else {
      check_args(callee, *rule, shape, args, called);
    }
  }
  graph_.freeze(args);
  const bool hashable = rule == nullptr || hashes(graph_, *hash_rule(*rule, args), kNoNode);
  const NodeId made =
      graph_.add_instance({.called = called, .type = callee, .args = args}, hashable);
  if (std::exchange(misused_, false)) graph_.set_unread(made);
  if (!reached.module.empty()) reached_.emplace(made, std::move(reached));
  return made;
}

NodeId Globals::instantiate(NodeId callee, NodeId args) {
  if (log_ != nullptr) return log_call(callee, args);
  const bool named = graph_.kind(callee) == Kind::kName;
  const NameRule* rule = named ? graph_.global(callee).rule : nullptr;
  const bool made = rule != nullptr && rule->fresh != Args::kNever && graph_.tuple(args).empty();
  return instance(callee, args, !made);
}

/// Returns the rule of the class of which a call makes an instance.
const NameRule* Globals::hash_rule(const NameRule& called, NodeId args) const {
  if (called.call != Args::kReconstructor) return &called;
  const auto items = graph_.tuple(args);
  const bool named = !items.empty() && graph_.kind(items[0]) == Kind::kName;
  const NameRule* made = named ? graph_.global(items[0]).rule : nullptr;
  return made == nullptr ? &called : made;
}

void Globals::check_args(NodeId callee, const NameRule& rule, Args shape, NodeId args,
                         bool called) {
  const auto name = [&] { return full_name(graph_.global(callee)); };
  if (shape == Args::kNever) {
    const bool refused = called ? rule.is == Is::kValue : rule.is != Is::kClass;
    if (!refused) return misuse(callee, called ? "called" : "made by NEWOBJ");
    input_.fail(Code::kTornFile, name() + " can't be " + (called ? "called" : "made by NEWOBJ") +
                                     ": Python refuses it, so it is garbled");
  }
  const Fit fit = fit_of(graph_, shape, rule, args);
  if (fit == Fit::kRefused) {
    input_.fail(Code::kTornFile,
                name() + " is given arguments that Python refuses: the pickle is garbled");
  }
  if (fit == Fit::kFits && shape != Args::kUnchecked) return;
  runs(name());
  if (fit == Fit::kFits) return;
  misuse(callee, "given these arguments");
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
  graph_.freeze(callee);
  not_interpreted(Code::kUnsupported, "it calls what another call returned");
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
  if (log_ != nullptr) {
    if (graph_.kind(target) == Kind::kName) {
      log_refused(full_name(graph_.global(target)), "the pickle changes it for the whole program");
    }
    return check_parts({&state, 1});
  }
  if (graph_.kind(target) != Kind::kInstance) torn("BUILD of something that is not an object");
  check_unused(target);
  Instance& instance = graph_.instance(target);
  if (instance.state != kNoNode) {
    graph_.set_unread(target);
    not_interpreted(Code::kTornFile, "an object is built twice");
  }
  if (const NameRule* rule = rule_of_type(target); rule != nullptr) {
    const Fit fit = fit_of(graph_, *rule, instance.args, state);
    if (fit == Fit::kRefused) {
      input_.fail(Code::kTornFile,
                  full_name(graph_.global(instance.type)) +
                      " is given a state that Python refuses: the pickle is garbled");
    }
    if (fit == Fit::kUnread) misuse(instance.type, "given this state");
  }
  if (std::exchange(misused_, false)) graph_.set_unread(target);
  graph_.freeze(state);
  instance.state = state;
  const NameRule* rule = rule_of_type(target);
  if (rule != nullptr && rule->hash == Hash::kOfIndex) {
    graph_.set_hashable(target, hashes(graph_, *rule, state));
  }
}

void Globals::extend_list(NodeId target, std::span<const NodeId> items) {
  if (log_ != nullptr) return;
  if (graph_.kind(target) != Kind::kInstance) torn("APPEND to something that is not a list");
  Instance& instance = graph_.instance(target);
  const NameRule* rule = rule_of_type(target);
  if (rule != nullptr && rule->items != Items::kList) misuse(instance.type, "appended to");
  if (std::exchange(misused_, false)) graph_.set_unread(target);
  graph_.extend(instance.list_items, items);
}

void Globals::extend_dict(NodeId target, std::span<const NodeId> items) {
  if (log_ != nullptr) return;
  if (graph_.kind(target) != Kind::kInstance) torn("SETITEM of something that is not a dict");
  Instance& instance = graph_.instance(target);
  const NameRule* rule = rule_of_type(target);
  if (rule != nullptr && rule->items != Items::kDict) misuse(instance.type, "given items");
  if (std::exchange(misused_, false)) graph_.set_unread(target);
  graph_.extend(instance.dict_items, items);
}

bool Globals::is_storage(NodeId id) const {
  if (graph_.kind(id) != Kind::kTuple) return false;
  const auto items = graph_.tuple(id);
  return items.size() >= 5 && graph_.kind(items[0]) == Kind::kText &&
         graph_.text(items[0]) == "storage" && graph_.kind(items[1]) == Kind::kName;
}

void Globals::check_storage(NodeId id) const {
  if (log_ != nullptr) return;
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
  if (!fits)
    input_.fail(Code::kRefusedName, "opcode BINPERSID with something that is not a storage");
}

}  // namespace reprise::pickle
