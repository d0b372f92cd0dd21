#include "core/format/torch_checkpointing.hpp"

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "core/format/pickle/pickle_machine.hpp"
#include "core/geometry/folded_shape.hpp"

namespace reprise {
namespace {

using pickle::Graph;
using pickle::Kind;
using pickle::kNoNode;
using pickle::NodeId;

constexpr std::int64_t kRanksMax = std::int64_t{1} << 20U;
constexpr std::size_t kPathMax = 65536;
constexpr int kPathLevels = 200;

class MetadataReader {
 public:
  MetadataReader(const Graph& graph, const PickleSource& where, std::size_t bytes)
      : graph_(graph), where_(where), budget_(64 * bytes + (std::size_t{1} << 20U)) {}

  TorchCheckpointing read(NodeId root) {
    read_.version = "1.0";
    if (const NodeId version = find(root, "version"); version != kNoNode) {
      read_.version = text(version);
    }
    if (read_.version != "1.0" && read_.version != "2.0") {
      fail(Code::kUnsupported, "version " + read_.version + "; 1.0 and 2.0 are supported");
    }
    const std::int64_t world = number(entry(root, "world_size"));
    if (world < 1 || world > kRanksMax) fail(Code::kLimit, "a number of ranks that none has");
    read_.world_size = static_cast<std::int32_t>(world);
    const NodeId metadata = entry(root, "metadata");
    if (read_.version == "2.0") {
      each_of(metadata, [&](NodeId item, NodeId about) { read_item(text(item), about); });
    } else {
      each_of(metadata, [&](NodeId path, NodeId groups) {
        auto parts = parts_of(text(path));
        if (parts.empty()) fail(Code::kTornFile, "an empty path");
        const std::string item = std::exchange(parts.front(), "");
        parts.erase(parts.begin());
        read_groups(joined(parts), groups, read_.items[item]);
      });
      each_of(entry(root, "rank_to_layout_info_mappings"), [&](NodeId rank, NodeId layouts) {
        each_of(layouts, [&](NodeId item, NodeId layout) {
          read_layout(rank_of(rank), layout, read_.items[text(item)]);
        });
      });
    }
    return std::move(read_);
  }

 private:
  [[noreturn]] void fail(Code code, const std::string& message) const {
    throw pickle::error_at(where_, 0, code, message);
  }
  [[noreturn]] void garbled() const {
    fail(Code::kTornFile, "not what torch_checkpointing writes: garbled");
  }

  /// Bounds the work, because a pickle may refer to one part any number of times.
  void charge(std::size_t cost) {
    if (cost > budget_) fail(Code::kLimit, "it repeats its parts far more often than it is long");
    budget_ -= cost;
  }

  template <class Visit>
  void each_of(NodeId dict, const Visit& visit) {
    if (graph_.kind(dict) != Kind::kDict) garbled();
    graph_.each_pair(graph_.chain(dict), [&](NodeId key, NodeId value) {
      charge(1);
      visit(key, value);
    });
  }
  NodeId find(NodeId dict, std::string_view name) {
    NodeId found = kNoNode;
    each_of(dict, [&](NodeId key, NodeId value) {
      if (graph_.kind(key) == Kind::kText && graph_.text(key) == name) found = value;
    });
    return found;
  }
  NodeId entry(NodeId dict, std::string_view name) {
    const NodeId found = find(dict, name);
    if (found == kNoNode) garbled();
    return found;
  }
  template <class Visit>
  void each_item(NodeId node, const Visit& visit) {
    if (graph_.kind(node) == Kind::kTuple) {
      charge(graph_.tuple(node).size());
      for (const NodeId item : graph_.tuple(node)) visit(item);
    } else if (graph_.kind(node) == Kind::kList) {
      graph_.each(graph_.chain(node), [&](NodeId item) {
        charge(1);
        visit(item);
      });
    } else {
      garbled();
    }
  }
  std::string text(NodeId node) {
    if (graph_.kind(node) != Kind::kText) garbled();
    charge(graph_.text(node).size());
    return std::string(graph_.text(node));
  }
  std::int64_t number(NodeId node) const {
    if (graph_.kind(node) != Kind::kInteger) garbled();
    return graph_.integer(node);
  }
  std::vector<std::int64_t> numbers(NodeId node) {
    std::vector<std::int64_t> found;
    each_item(node, [&](NodeId item) { found.push_back(number(item)); });
    return found;
  }
  Dims dims(NodeId node) {
    const auto found = numbers(node);
    if (found.size() > kMaxNdim) {
      fail(Code::kUnsupported,
           "a part of a tensor of more than " + std::to_string(kMaxNdim) + " dimensions");
    }
    for (const std::int64_t one : found) {
      if (one < 0) garbled();
    }
    return Dims(found);
  }
  std::int32_t rank_of(NodeId node) const {
    const std::int64_t rank = number(node);
    if (rank < 0 || rank >= read_.world_size) fail(Code::kTornFile, "a rank that is none");
    return static_cast<std::int32_t>(rank);
  }

  void read_item(const std::string& key, NodeId about) {
    TorchCheckpointing::Item& item = read_.items[key];
    each_of(entry(about, "nested_path_to_metadata"), [&](NodeId path, NodeId groups) {
      read_groups(joined(parts_of(text(path))), groups, item);
    });
    each_of(entry(about, "rank_to_layout_info"),
            [&](NodeId rank, NodeId layout) { read_layout(rank_of(rank), layout, item); });
  }

  void read_layout(std::int32_t rank, NodeId layout, TorchCheckpointing::Item& item) {
    if (graph_.kind(layout) == Kind::kNone) return;
    const std::string path = text(entry(layout, "file_path"));
    const std::string form = text(entry(entry(layout, "serialization_format"), "type"));
    if (form != "TorchSerialization") {
      fail(Code::kUnsupported, "an item in the file " + path.substr(0, 200) + " in the form " +
                                   form.substr(0, 100) + "; files of torch.save are supported");
    }
    item.files[rank] = path;
  }

  /// The JSON text of a list, such as '["state",0,"exp_avg"]'.
  std::vector<std::string> parts_of(const std::string& json) {
    using Json = nlohmann::json;
    if (json.size() > kPathMax) fail(Code::kLimit, "a path of more than 64 KiB");
    const auto flat = [](int depth, Json::parse_event_t, Json&) { return depth <= 2; };
    const Json list = Json::parse(json, flat, false);
    if (!list.is_array() || list.size() > kPathLevels) garbled();
    std::vector<std::string> parts;
    for (const Json& part : list) {
      if (part.is_string()) {
        parts.push_back(part.get<std::string>());
      } else if (part.is_number_integer()) {
        parts.push_back(std::to_string(part.get<std::int64_t>()));
      } else {
        garbled();
      }
    }
    return parts;
  }
  static std::string joined(const std::vector<std::string>& parts) {
    std::string name;
    for (const std::string& part : parts) name += (name.empty() ? "" : ".") + part;
    return name;
  }

  void read_groups(const std::string& name, NodeId groups, TorchCheckpointing::Item& item) {
    auto& known = item.tensors[name];
    each_item(groups, [&](NodeId node) {
      TorchCheckpointing::Group group;
      each_item(entry(node, "ranks"), [&](NodeId rank) { group.ranks.insert(rank_of(rank)); });
      const NodeId about = entry(node, "sharding_metadata");
      const std::string type = text(entry(about, "type"));
      const NodeId data = entry(about, "data");
      if (type == "DTensorShardingMetadata") {
        read_dtensor(data, group);
      } else if (type == "default_tensor_v1") {
        read_shards(data, group);
      } else {
        fail(Code::kUnsupported, "tensors of the kind " + type.substr(0, 100));
      }
      known.push_back(std::move(group));
    });
  }

  void read_dtensor(NodeId data, TorchCheckpointing::Group& group) {
    group.sharding.shape = numbers(entry(data, "global_shape"));
    const NodeId mesh = entry(data, "mesh_spec");
    group.sharding.mesh = numbers(entry(mesh, "mesh_shape"));
    each_item(entry(data, "placements"), [&](NodeId node) {
      const std::string type = text(entry(node, "type"));
      MeshPlacement placement;
      if (type == "Shard" || type == "StridedShard") {
        const bool strided = type == "StridedShard";
        placement = {
            .kind = strided ? MeshPlacement::Kind::kStridedShard : MeshPlacement::Kind::kShard,
            .dim = number(entry(node, "dim")),
            .split_factor = strided ? number(entry(node, "split_factor")) : 1};
      } else if (type != "Replicate") {
        fail(Code::kUnsupported, "the placement " + type.substr(0, 100));
      }
      group.sharding.placements.push_back(placement);
    });
    std::int64_t member = 0;
    each_item(entry(mesh, "mesh_data"), [&](NodeId node) {
      const std::int64_t linear = member++;
      const std::int32_t rank = rank_of(node);
      if (group.ranks.contains(rank)) {
        group.coordinates[rank] = coordinates_of(linear, group.sharding.mesh);
      }
    });
  }

  std::vector<std::int64_t> coordinates_of(std::int64_t linear,
                                           const std::vector<std::int64_t>& mesh) {
    charge(mesh.size());
    std::vector<std::int64_t> coordinates(mesh.size());
    for (std::size_t m = mesh.size(); m-- > 0;) {
      if (mesh[m] < 1) garbled();
      coordinates[m] = linear % mesh[m];
      linear /= mesh[m];
    }
    if (linear != 0) garbled();
    return coordinates;
  }

  void read_shards(NodeId data, TorchCheckpointing::Group& group) {
    const Dims shape = dims(entry(data, "global_shape"));
    const auto list = [&](const char* name) {
      std::vector<Dims> all;
      each_item(entry(data, name), [&](NodeId node) {
        all.push_back(dims(node));
        if (all.back().size() != shape.size()) garbled();
      });
      return all;
    };
    const auto offsets = list("global_offsets");
    const auto local = list("local_offsets");
    const auto sizes = list("local_sizes");
    if (offsets.size() != local.size() || offsets.size() != sizes.size()) garbled();
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      for (std::size_t d = 0; d < shape.size(); ++d) {
        if (sizes[i][d] > shape[d] || offsets[i][d] > shape[d] - sizes[i][d]) garbled();
      }
      group.shards.push_back({{shape, {offsets[i], sizes[i]}}, local[i]});
    }
  }

  const Graph& graph_;
  const PickleSource& where_;
  std::size_t budget_;
  TorchCheckpointing read_;
};

}  // namespace

std::string TorchCheckpointing::file_of(const std::string& item, std::int32_t rank) const {
  const auto known = items.find(item);
  if (known != items.end()) {
    const auto file = known->second.files.find(rank);
    if (file != known->second.files.end()) return file->second;
  }
  return item + "_" + std::to_string(rank) + ".pt";
}

std::vector<LocalShard> TorchCheckpointing::shards_of(const std::string& item,
                                                      const std::string& name,
                                                      std::int32_t rank) const {
  const auto known = items.find(item);
  if (known == items.end()) return {};
  const auto groups = known->second.tensors.find(name);
  if (groups == known->second.tensors.end()) return {};
  for (const Group& group : groups->second) {
    if (!group.ranks.contains(rank)) continue;
    if (!group.shards.empty()) return group.shards;
    const auto coordinates = group.coordinates.find(rank);
    if (coordinates == group.coordinates.end()) continue;
    const ShardPlace place = place_of_member(group.sharding, coordinates->second);
    return {{place, Dims::filled(place.shape.size(), 0)}};
  }
  return {};
}

TorchCheckpointing read_torch_checkpointing(ByteSpan input, const PickleSource& where) {
  const pickle::Reading reading = pickle::read_graph(input, pickle::Grammar::kMetadata, where);
  return MetadataReader(reading.graph, where, input.size()).read(reading.root);
}

}  // namespace reprise
