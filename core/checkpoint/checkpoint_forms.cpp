#include "core/checkpoint/checkpoint_forms.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "core/checkpoint/beside_payload.hpp"
#include "core/format/backend_info.hpp"
#include "core/format/common_state.hpp"
#include "core/megatron/expert_key.hpp"

namespace reprise {
namespace {

bool is(const Value* value, std::string_view text) {
  const auto* found = value == nullptr ? nullptr : value->as<std::string>();
  return found != nullptr && *found == text;
}

bool is_true(const Value* value) {
  const bool* found = value == nullptr ? nullptr : value->as<bool>();
  return found != nullptr && *found;
}

/// Adds the forms of all classes that a value names.
class Names {
 public:
  explicit Names(Forms& forms) : forms_(forms) {}

  void add(const Name& name) {
    if (!name.module.starts_with("megatron.")) return;
    if (const auto form = form_of(name)) forms_.add(*form);
  }

  void visit(const Value& value) {
    if (const auto* name = value.as<Name>()) return add(*name);
    if (const auto* list = value.as<List>()) return each(*list);
    if (const auto* tuple = value.as<Tuple>()) return each(tuple->items);
    if (const auto* set = value.as<Set>()) return each(set->items);
    if (const auto* dict = value.as<Dict>()) return each(*dict);
    if (const auto* object = value.as<Object>()) {
      add(object->type);
      each(object->args);
      each(object->state);
      each(object->list_items);
      each(object->dict_items);
    }
  }

 private:
  void each(const List& items) {
    for (const Value& item : items) visit(item);
  }
  void each(const Dict& entries) {
    for (const auto& [key, value] : entries) {
      visit(key);
      visit(value);
    }
  }

  Forms& forms_;
};

/// Number of optimizers that the common state has: those of a chain have the keys 0, 1, ...
std::size_t count_optimizers(const Value& optimizer) {
  if (const auto* list = optimizer.as<List>()) return list->size();
  const auto* dict = optimizer.as<Dict>();
  if (dict == nullptr) return 0;
  const auto parts = std::ranges::count_if(
      *dict, [](const auto& entry) { return entry.first.template as<std::int64_t>() != nullptr; });
  return parts == 0 ? 1 : static_cast<std::size_t>(parts);
}

/// Calls `see` with the common state of each optimizer.
template <class See>
void each_optimizer(const Value& optimizer, const See& see) {
  see(optimizer);
  if (const auto* list = optimizer.as<List>()) {
    for (const Value& part : *list) see(part);
  } else if (const auto* dict = optimizer.as<Dict>()) {
    for (const auto& [key, part] : *dict) {
      if (key.template as<std::int64_t>() != nullptr) see(part);
    }
  }
}

/// `flattened` says whether there are flattened tensors.
void add_sharding_type(const Value* type, bool flattened, Forms& forms) {
  if (is(type, "fully_sharded_model_space") && !flattened) forms.add(Form::kNoLongerFlattened);
  if (is(type, "fully_sharded_bucket_space")) forms.add(Form::kBucketSpace);
  if (is(type, "fully_reshardable")) forms.add(Form::kWholeState);
  if (is(type, "dp_reshardable")) forms.add(Form::kBucketState);
}

void add_common(const Value& common, const Catalog& catalog, Forms& forms) {
  Names(forms).visit(common);
  const Value* content = common.find("content_metadata");
  if (content != nullptr) forms.add(Form::kContentMetadata);
  const auto of_optimizer = [](const StoredTensor& tensor) { return is_of_optimizer(tensor.key); };
  if (std::ranges::none_of(catalog.tensors, of_optimizer)) return;
  const Value* optimizer = common.find("optimizer");
  const bool flattened = forms.has(Form::kFlattened);
  const auto add = [&](const Value* type) { add_sharding_type(type, flattened, forms); };
  if (content != nullptr) add(content->find("distrib_optim_sharding_type"));
  if (optimizer == nullptr) return;
  each_optimizer(*optimizer,
                 [&add](const Value& part) { add(part.find("param_state_sharding_type")); });
  const bool avoids = content != nullptr && is_true(content->find("chained_optim_avoid_prefix"));
  const bool prefixed = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.key.starts_with("chained_") || tensor.key.find(".chained_") != std::string::npos;
  });
  if (avoids && !prefixed && count_optimizers(*optimizer) > 1) forms.add(Form::kWithoutPrefix);
}

void add_backend(const Checkpoint& checkpoint, Forms& forms) {
  const auto bytes = checkpoint.small_file(kBackendFile);
  if (!bytes) return forms.add(Form::kNoBackend);
  const BackendInfo info = read_backend_info(*bytes);
  forms.add(info.names_common ? Form::kBackendOfBoth : Form::kBackendOfShards);
  if (!info.unknown_keys.empty()) forms.add(Form::kBackendUnknown);
}

void add_megatron(Checkpoint& checkpoint, const Value* instead, Forms& forms) {
  const auto if_readable = [](const auto& add) {
    try {
      add();
    } catch (const Error&) {  // `verify` says what is wrong with it
    }
  };
  if_readable([&] { add_backend(checkpoint, forms); });
  if_readable([&] {
    if (has_manifest(checkpoint)) forms.add(Form::kManifest);
  });
  if_readable([&] {
    forms.add(Form::kCommonUnread);
    const auto common = checkpoint.common();
    forms.remove(Form::kCommonUnread);
    if (!common) return;
    const bool file = common->source == kCommonFile;
    forms.add(file ? Form::kCommonInFile : Form::kCommonInObject);
    if (instead == nullptr && common->item.value) instead = &*common->item.value;
    if (instead != nullptr) return add_common(*instead, checkpoint.catalog(), forms);
    for (const std::string& name : common->item.unlisted_names) {
      const std::size_t dot = name.rfind('.');
      if (dot == std::string::npos) continue;
      Names(forms).add({name.substr(0, dot), name.substr(dot + 1)});
    }
  });
}

}  // namespace

Forms forms_of(Checkpoint& checkpoint, const Value* instead) {
  const Metadata& metadata = checkpoint.metadata();
  Forms forms = metadata.forms;
  const bool is_torch_dist = metadata.form == StoredForm::kTorchDist;
  for (const StoredTensor& tensor : metadata.catalog.tensors) {
    if (const auto form = form_of(tensor.dtype)) forms.add(*form);
    if (!tensor.original_shape.empty()) forms.add(Form::kFlattened);
    if (is_torch_dist && !tensor.chunks.empty() &&
        tensor.chunks.front().form != ItemForm::kArchive) {
      forms.add(Form::kSafetensorsItems);
    }
  }
  if (!is_torch_dist) return forms;
  if (!metadata.ranks.empty()) forms.add(Form::kRankMetadata);
  if (checkpoint.of_megatron()) add_megatron(checkpoint, instead, forms);
  return forms;
}

}  // namespace reprise
