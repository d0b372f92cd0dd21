#include <algorithm>

#include "core/state/state_dict.hpp"
#include "core/verify/verify_objects.hpp"

namespace reprise {
namespace {

constexpr std::string_view kPendingName = "WILL_RERUN_FROM_CHECKPOINT";
constexpr std::int64_t kPendingNumber = 3;
constexpr std::string_view kShardsKey = "rerun_state_machine_state";

/// True if the state says that a fault is pending. The state is an int or an enum object
/// RerunState(3); some versions of Python store the enum by name.
bool is_pending(const Value& state) {
  if (const auto* number = state.as<std::int64_t>()) return *number == kPendingNumber;
  if (const auto* text = state.as<std::string>()) return *text == kPendingName;
  if (const auto* name = state.as<Name>()) return name->name.ends_with(kPendingName);
  const auto* object = state.as<Object>();
  return object != nullptr &&
         std::any_of(object->args.begin(), object->args.end(), [](const Value& arg) {
           return arg.as<std::int64_t>() != nullptr || arg.as<std::string>() != nullptr
                      ? is_pending(arg)
                      : false;
         });
}

}  // namespace

Findings check_rerun(const Value& common, const Catalog& catalog) {
  const Value* machine = common.find("rerun_state_machine");
  const Value* state = machine != nullptr ? machine->find("state") : nullptr;
  if (state == nullptr || !is_pending(*state)) return {};
  const bool present =
      std::any_of(catalog.objects.begin(), catalog.objects.end(), [](const StoredObject& object) {
        const auto parsed = parse_object_key(object.key);
        return parsed && parsed->key == kShardsKey;
      });
  if (present) return {};
  return {{Severity::kError, Code::kNotStored,
           "the common state says that a fault is pending (rerun_state_machine.state is " +
               std::string(kPendingName) +
               "), but the ranks' objects that describe it are missing: a restart would rerun "
               "nothing and find no fault",
           std::string(kShardsKey)}};
}

}  // namespace reprise
