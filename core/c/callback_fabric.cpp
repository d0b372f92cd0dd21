#include "core/c/callback_fabric.hpp"

#include <cstring>
#include <sstream>
#include <utility>

#include "core/base/bytes.hpp"
#include "core/c/codes.hpp"
#include "core/c/last_error.hpp"
#include "core/c/structs.hpp"
#include "core/c/texts.hpp"
#include "core/ports/reduced.hpp"

namespace reprise::c {
namespace {

class CallbackCommunicator final : public Communicator {
 public:
  CallbackCommunicator(const rp_job_options& options, Group group, GroupRank rank)
      : options_(options), group_(std::move(group)), rank_(rank) {
    for (const GlobalRank member : group_.members()) members_.push_back(member.value);
  }

  const Group& group() const override { return group_; }
  GroupRank rank() const override { return rank_; }
  void barrier() override { all_gather({}); }

  std::vector<Bytes> all_gather(ByteSpan mine) override {
    if (broken_) throw Error(*broken_);
    rp_gathered gathered;
    gathered.parts.resize(members_.size());
    const std::int32_t status = options_.all_gather(
        options_.context, members_.data(), members_.size(), mine.data(), mine.size(), &gathered);
    std::vector<Bytes> all;
    for (auto& part : gathered.parts) {
      if (part) all.push_back(std::move(*part));
    }
    if (status == 0 && !gathered.failure && all.size() == members_.size()) return all;
    broken_ = failure_of(status, gathered);
    throw Error(*broken_);
  }

  Bytes broadcast(GroupRank root, ByteSpan bytes) override {
    auto all = all_gather(root == rank_ ? bytes : ByteSpan());
    return std::move(all[static_cast<std::size_t>(root.value)]);
  }

  std::vector<std::int64_t> all_reduce(Reduce how, std::span<const std::int64_t> mine) override {
    std::vector<std::int64_t> result(mine.begin(), mine.end());
    const auto all = all_gather(std::as_bytes(mine));
    for (std::size_t member = 0; member < all.size(); ++member) {
      if (all[member].size() != mine.size_bytes()) {
        throw Error(Code::kCollectiveMismatch,
                    "all_reduce: members pass different numbers of values", place());
      }
      for (std::size_t i = 0; i < result.size(); ++i) {
        std::int64_t theirs = 0;
        std::memcpy(&theirs, all[member].data() + i * sizeof theirs, sizeof theirs);
        if (member == 0) result[i] = theirs;
        if (member != 0) result[i] = reduced(how, result[i], theirs);
      }
    }
    return result;
  }

 private:
  ErrorPlace place() const { return {.rank = group_.member(rank_)}; }

  Error failure_of(std::int32_t status, const rp_gathered& gathered) const {
    if (gathered.failure) return gathered.failure->within(place());
    if (status != 0) {
      return {Code::kPeerFailed, "the callback all_gather returned " + std::to_string(status),
              place()};
    }
    return {Code::kUsage, "the callback all_gather did not hand over the bytes of all members",
            place()};
  }

  rp_job_options options_;
  Group group_;
  GroupRank rank_;
  std::vector<std::int32_t> members_;
  std::optional<Error> broken_;  ///< why a call failed; then all later ones fail
};

}  // namespace

CallbackFabric::CallbackFabric(const rp_job_options& options) : options_(options) {
  if (options.all_gather == nullptr) {
    throw Error(Code::kUsage, "all_gather: a fabric of callbacks needs it");
  }
  if (options.size < 1 || options.rank < 0 || options.rank >= options.size) {
    throw Error(Code::kUsage, "rank: " + std::to_string(options.rank) + " is none of the " +
                                  std::to_string(options.size) + " ranks");
  }
}

std::shared_ptr<Communicator> CallbackFabric::communicator(const Group& group) {
  if (const auto own = group.rank_of(rank())) {
    return std::make_shared<CallbackCommunicator>(options_, group, *own);
  }
  std::ostringstream text;
  text << "this rank is not in the group " << group;
  throw Error(Code::kLayoutMismatch, text.str(), {.rank = rank()});
}

}  // namespace reprise::c

std::int32_t rp_gathered_put(rp_gathered* gathered, size_t place, const void* bytes, size_t size) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(gathered, "gathered");
    if (size != 0) c::require(bytes, "bytes");
    if (place >= gathered->parts.size()) {
      throw Error(Code::kUsage, "place: " + std::to_string(place) + " is none of the group's " +
                                    std::to_string(gathered->parts.size()) + " members");
    }
    const auto* first = static_cast<const std::byte*>(bytes);
    gathered->parts[place] = Bytes(first, first + size);
  });
}

std::int32_t rp_gathered_fail(rp_gathered* gathered, std::int32_t code, const char* message) {
  using namespace reprise;
  return c::guarded([&] {
    c::require(gathered, "gathered");
    gathered->failure = Error(c::code_numbered(code).value_or(Code::kPeerFailed),
                              c::text_or(message, "the callback all_gather failed"));
  });
}
