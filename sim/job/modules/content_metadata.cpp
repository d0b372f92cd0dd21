#include "sim/job/modules/content_metadata.hpp"

namespace reprise::sim {
namespace {

constexpr const char* kSharding = "distrib_optim_sharding_type";

}  // namespace

ContentMetadata built_metadata(const MetadataCall& call) {
  return {call.module.optimizer_sharding, call.groups.dp_cp};
}

Value stripped(const ContentMetadata& metadata) {
  if (!metadata.optimizer_sharding) return Dict{};
  return Dict{{kSharding, std::string(name_of(*metadata.optimizer_sharding))}};
}

ContentMetadata put_back(const Value& common, ContentMetadata own) {
  const Value* entry = common.find(kContentMetadata);
  const Value* sharding = entry == nullptr ? nullptr : entry->find(kSharding);
  const auto* name = sharding == nullptr ? nullptr : sharding->as<std::string>();
  if (name != nullptr) own.optimizer_sharding = sharding_named(*name);
  return own;
}

ContentMetadata loaded_metadata(const Value* common, const MetadataCall& call) {
  return put_back(common == nullptr ? Value(Dict{}) : *common, built_metadata(call));
}

}  // namespace reprise::sim
