#include "core/save/save_commit.hpp"

#include <utility>

#include "core/agree/agreement.hpp"
#include "core/agree/leader.hpp"
#include "core/agree/peer_wire.hpp"
#include "core/base/check.hpp"
#include "core/base/hash.hpp"
#include "core/save/phases.hpp"
#include "core/save/rank_write.hpp"
#include "core/save/retention.hpp"

namespace reprise {
namespace {

/// Checks that each rank wrote exactly what the plan assigns to it.
void require_as_planned(const GlobalPlan& plan, const std::vector<WrittenFiles>& written) {
  std::vector<std::size_t> planned(written.size(), 0);
  for (const auto& object : plan.objects)
    ++planned.at(static_cast<std::size_t>(object.owner.value));
  for (const auto& tensor : plan.tensors) {
    for (const GroupRank owner : tensor.owners) {
      ++planned.at(static_cast<std::size_t>(owner.value));
    }
  }
  for (std::size_t r = 0; r < written.size(); ++r) {
    std::size_t items = 0;
    for (const WrittenFile& file : written[r]) items += file.ranges.size();
    if (items == planned[r]) continue;
    PeerWire({}, "the list of what was written")
        .refuse("names " + std::to_string(items) + " items where " + std::to_string(planned[r]) +
                " are planned");
  }
}

/// Combines the plan with the written ranges; the ranges of each rank are in the order of the plan.
Catalog catalog_of(const GlobalPlan& plan, const std::vector<WrittenFiles>& written) {
  Catalog catalog;
  std::vector<std::vector<std::pair<FileIndex, ByteRange>>> places(written.size());
  std::vector<std::size_t> next(written.size(), 0);
  for (std::size_t r = 0; r < written.size(); ++r) {
    for (std::size_t number = 0; number < written[r].size(); ++number) {
      const auto file = static_cast<FileIndex>(catalog.files.size());
      catalog.files.push_back(payload_name({static_cast<std::int32_t>(r)}, number));
      for (const ByteRange& range : written[r][number].ranges) places[r].emplace_back(file, range);
    }
  }
  const auto take = [&](GroupRank owner) {
    const auto r = static_cast<std::size_t>(owner.value);
    return places[r][next[r]++];
  };
  for (const auto& object : plan.objects) {
    const auto [file, range] = take(object.owner);
    catalog.objects.push_back({object.key, file, range});
  }
  for (const auto& tensor : plan.tensors) {
    StoredTensor stored{.key = tensor.key,
                        .dtype = tensor.dtype,
                        .shape = tensor.shape,
                        .chunks = {},
                        .original_shape = {},
                        .folded = tensor.folded};
    for (std::size_t c = 0; c < tensor.owners.size(); ++c) {
      const auto [file, range] = take(tensor.owners[c]);
      stored.chunks.push_back({(*tensor.boxes)[c], file, range});
    }
    catalog.tensors.push_back(std::move(stored));
  }
  return catalog;
}

/// Returns an id in uuid form. It is derived from the plan and the target, so equal saves have
/// equal ids.
std::string save_id(const GlobalPlan& plan, const CommitTarget& target) {
  const std::uint64_t high = mix64(plan.signature, hash_of(std::string_view(target.directory)));
  const std::string digits =
      hex(high) + hex(mix64(high, static_cast<std::uint64_t>(target.step.value_or(Step{}).value)));
  return digits.substr(0, 8) + "-" + digits.substr(8, 4) + "-4" + digits.substr(13, 3) + "-a" +
         digits.substr(17, 3) + "-" + digits.substr(20, 12);
}

std::vector<std::string> decode_notes(ByteSpan bytes) {
  PeerWire wire(bytes, "notes");
  return wire.texts();
}

}  // namespace

CommitContent content_of(const GlobalPlan& plan, const CommitTarget& target,
                         const std::vector<Bytes>& votes) {
  CommitContent content{.metadata = {}, .common = {}, .digests = {}};
  std::vector<WrittenFiles> files;
  for (const auto& vote : votes) {
    const GroupRank rank{static_cast<std::int32_t>(files.size())};
    files.push_back(decode_written(vote));
    for (std::size_t number = 0; number < files.back().size(); ++number) {
      const WrittenFile& file = files.back()[number];
      const std::string name = payload_name(rank, number);
      content.payload.push_back({name, file.bytes});
      if (file.sha256) content.digests.push_back({name, *file.sha256});
    }
  }
  require_as_planned(plan, files);
  content.metadata.catalog = catalog_of(plan, files);
  for (const auto& [key, path] : *plan.paths) content.metadata.planner_data.push_back({key, path});
  content.metadata.checkpoint_id = target.directory;
  content.metadata.save_id = save_id(plan, target);
  return content;
}

SaveCommit::SaveCommit(const Ports& ports, std::shared_ptr<Communicator> group,
                       const SaveSeams& seams, CommitTarget target)
    : ports_(ports), group_(std::move(group)), seams_(seams), target_(std::move(target)) {}

Role SaveCommit::role() const {
  const GroupRank leader = seams_.leader.leader(*group_);
  return group_->rank() == leader ? Role::kLeader : Role::kMember;
}

void SaveCommit::prepare(const StateDict& state) {
  begin_phase(ports_.trace, phase::kPrepare);
  const Bytes told = from_leader(*group_, seams_.leader, [&] {
    common_ = state.common;
    run_protocol(seams_.prepare(ports_.store, target_), phase::kPrepare, ports_.trace);
    Bytes wire;
    append_le(wire, static_cast<std::uint8_t>(target_.keep || target_.claim.replaces));
    put_text(wire, target_.claim.token);
    return wire;
  });
  PeerWire wire(told, "the claim");
  older_goes_ = wire.number<std::uint8_t>() != 0;
  target_.claim.token = wire.text();
  end_phase(ports_.trace, phase::kPrepare);
}

std::vector<std::string> SaveCommit::commit(const GlobalPlan& plan, const std::vector<Bytes>& votes,
                                            bool manifest) {
  begin_phase(ports_.trace, phase::kCommit);
  const auto notes = agree_on(*group_, [&] {
    CommitContent content;
    if (role() == Role::kLeader) {
      content = content_of(plan, target_, votes);
      content.common = std::move(common_);
      content.manifest = manifest;
    }
    run_protocol(seams_.commit(ports_.store, target_, content, role()), phase::kCommit,
                 ports_.trace);
    return take_notes();
  });
  end_phase(ports_.trace, phase::kCommit);
  std::vector<std::string> all;
  for (const Bytes& of_one : notes) {
    for (auto& note : decode_notes(of_one)) all.push_back(std::move(note));
  }
  return all;
}

/// Returns this rank's messages for the operator and removes them from the claim.
Bytes SaveCommit::take_notes() {
  Bytes wire;
  put_texts(wire, std::exchange(target_.claim.notes, {}));
  return wire;
}

std::vector<std::string> SaveCommit::retain() {
  if (!target_.keep) return {};
  begin_phase(ports_.trace, phase::kRetention);
  const Bytes notes = from_leader(*group_, seams_.leader, [&] {
    try {
      run_protocol(seams_.retention(ports_.store, target_), phase::kRetention, ports_.trace);
    } catch (const std::exception& error) {
      target_.claim.notes.push_back(
          std::string("older checkpoints were not all removed; the next save tries again: ") +
          error.what());
    }
    return take_notes();
  });
  end_phase(ports_.trace, phase::kRetention);
  return decode_notes(notes);
}

void SaveCommit::abandon() { reprise::abandon(ports_.store, target_); }

}  // namespace reprise
