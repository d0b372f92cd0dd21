#include "tests/models/nccl/clique.hpp"

#include <algorithm>
#include <cstring>

namespace reprise::models {
namespace {

std::int64_t reduced(ncclRedOp_t how, std::int64_t a, std::int64_t b) {
  if (how == ncclMin) return std::min(a, b);
  return how == ncclMax ? std::max(a, b) : a + b;
}

Bytes joined(const std::vector<Kernel::Part>& parts, std::size_t number) {
  Bytes all;
  for (const auto& part : parts) append(all, part.sent[number]);
  return all;
}

Bytes sum_of(const std::vector<Kernel::Part>& parts, std::size_t number, const Operation& of) {
  Bytes all = parts.front().sent[number];
  for (std::size_t member = 1; member < parts.size(); ++member) {
    for (std::size_t i = 0; i < of.count; ++i) {
      std::int64_t a = 0;
      std::int64_t b = 0;
      std::memcpy(&a, all.data() + i * sizeof a, sizeof a);
      std::memcpy(&b, parts[member].sent[number].data() + i * sizeof b, sizeof b);
      a = reduced(of.reduction, a, b);
      std::memcpy(all.data() + i * sizeof a, &a, sizeof a);
    }
  }
  return all;
}

Bytes result_of(const std::vector<Kernel::Part>& parts, std::size_t number, const Operation& of) {
  switch (of.kind) {
    case Operation::Kind::kAllGather:
      return joined(parts, number);
    case Operation::Kind::kBroadcast:
      return parts[static_cast<std::size_t>(of.root)].sent[number];
    case Operation::Kind::kAllReduce:
      break;
  }
  return sum_of(parts, number, of);
}

}  // namespace

std::size_t Operation::bytes() const { return count * (type == ncclUint8 ? 1 : 8); }

bool Operation::matches(const Operation& other) const {
  return kind == other.kind && count == other.count && type == other.type && root == other.root &&
         reduction == other.reduction;
}

bool Kernel::complete() const {
  const auto& first = parts.front().operations;
  return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
    return part.arrived && !part.aborted && !part.lost &&
           std::equal(first.begin(), first.end(), part.operations.begin(), part.operations.end(),
                      [](const Operation& a, const Operation& b) { return a.matches(b); });
  });
}

bool Kernel::awaits_peer(std::size_t member) const {
  const Part& part = parts[member];
  return part.launched && !part.left && !part.aborted && parts.size() > 1 && !complete();
}

void Kernel::take_inputs(Driver driver) {
  for (auto& part : parts) {
    driver.memory.open(part.device);
    for (const auto& operation : part.operations) {
      part.sent.emplace_back(operation.send, operation.send + operation.bytes());
    }
    driver.memory.close();
  }
}

void Kernel::write_outputs(Driver driver, std::size_t member) const {
  const Part& part = parts[member];
  driver.memory.open(part.device);
  for (std::size_t number = 0; number < part.operations.size(); ++number) {
    const Operation& operation = part.operations[number];
    const Bytes result = result_of(parts, number, operation);
    std::copy(result.begin(), result.end(), operation.receive);
  }
  driver.memory.close();
}

ncclResult_t Clique::verdict() const {
  for (std::size_t a = 0; a < members.size(); ++a) {
    for (std::size_t b = a + 1; b < members.size(); ++b) {
      const ncclComm& one = *members[a];
      const ncclComm& other = *members[b];
      if (one.host == other.host && one.device == other.device) return ncclInvalidUsage;
      // The loopback interface of a node does not reach another one.
      if (one.node != other.node && (one.loopback || other.loopback)) return ncclSystemError;
    }
  }
  return members.size() == ranks ? ncclSuccess : ncclInProgress;
}

Kernel& Clique::kernel(std::uint64_t number) {
  while (kernels.size() <= number) {
    kernels.push_back(std::make_unique<Kernel>());
    kernels.back()->parts.resize(ranks);
  }
  return *kernels[number];
}

}  // namespace reprise::models
