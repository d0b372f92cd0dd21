#include "sim/job/model/data_iterator.hpp"

#include "reprise/error.hpp"

namespace reprise::sim {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw Error(Code::kLoadRejected, "a stored data iterator " + what,
              {.key = "rerun_state_machine_state"});
}

std::int64_t number(const Value& batch, std::string_view key) {
  const Value* found = batch.find(key);
  const auto* count = found == nullptr ? nullptr : found->as<std::int64_t>();
  if (count == nullptr || *count < 0) refuse("has a batch without '" + std::string(key) + "'");
  return *count;
}

}  // namespace

SampleRange DataIterator::next(std::int64_t count) {
  if (wrapping_ == Wrapping::kPlain && !position_.replaying) {
    const SampleRange batch{position_.cursor, count};
    position_.cursor += count;
    return batch;
  }
  if (!position_.replaying) {
    position_.kept.push_back({position_.cursor, count});
    position_.cursor += count;
    return position_.kept.back();
  }
  if (at_ == position_.kept.size()) {
    throw Error(Code::kUsage, "a re-run reads more batches than the run before: " +
                                  std::to_string(position_.kept.size()) + " were kept");
  }
  return position_.kept[at_++];
}

void DataIterator::require_wrapped(std::string_view what_for) const {
  if (wrapping_ == Wrapping::kWrapped) return;
  throw Error(Code::kUnsupported,
              "the data iterator is not wrapped and keeps no batches, and " +
                  std::string(what_for) +
                  "; wrap it, or disable the rerun machine to train on without re-runs",
              {.key = "rerun_state_machine_state"});
}

void DataIterator::rewind() {
  require_wrapped("those of this iteration must be read again");
  position_.replaying = true;
  at_ = 0;
}

void DataIterator::advance() {
  position_.replaying = false;
  position_.kept.clear();
}

Value encode(const DataPosition& position) {
  List batches;
  for (const auto& batch : position.kept) {
    batches.emplace_back(Dict{{"first", batch.first}, {"count", batch.count}});
  }
  return Dict{{"saved_microbatches", std::move(batches)},
              {"replaying", position.replaying},
              {"replay_pos", 0}};
}

std::vector<SampleRange> decode_batches(const Value& value) {
  const Value* saved = value.find("saved_microbatches");
  const auto* batches = saved == nullptr ? nullptr : saved->as<List>();
  if (batches == nullptr) refuse("has no list of batches");
  std::vector<SampleRange> ranges;
  for (const auto& batch : *batches) {
    ranges.push_back({number(batch, "first"), number(batch, "count")});
  }
  return ranges;
}

}  // namespace reprise::sim
