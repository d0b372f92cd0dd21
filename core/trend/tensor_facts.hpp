#pragma once
// What is kept of a generation: a digest of each tensor, and the steps that it names.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/finding.hpp"
#include "core/checkpoint/tensor_survey.hpp"
#include "core/megatron/parameter_role.hpp"

namespace reprise {

/// Two tensors of one key, type and shape whose digests are equal have, but for a chance of 2^-128
/// that nobody sought, the same elements.
struct TensorFacts {
  ParameterRole role;
  std::uint64_t digest[2] = {0, 0};  ///< witness_digest() under two keys
  std::uint64_t bytes = 0;
  DType dtype = DType::kFloat32;
  bool zero = false;                  ///< every bit is 0
  std::optional<double> number = {};  ///< of a step counter

  bool same(const TensorFacts& other) const {
    return dtype == other.dtype && bytes == other.bytes && digest[0] == other.digest[0] &&
           digest[1] == other.digest[1];
  }
};

struct GenerationFacts {
  std::string name;
  std::int64_t number = 0;
  std::map<std::string, TensorFacts> tensors;  ///< by key, with "actor/" or such before it
  std::optional<std::int64_t> iteration;       ///< that the state itself names
  std::vector<std::int64_t> optimizer_steps;   ///< that the common state names
  std::vector<double> learning_rates;          ///< of the param groups, as far as they are saved
  Findings damage;                             ///< wrong checksums
  std::string unread;                          ///< why it, or a part of it, can't be read
};

/// Reads a checkpoint's tensors on all threads and adds what is kept of them; `before` stands
/// before each key. `wanted` says which keys to read. Throws the errors of survey().
void add_facts(Checkpoint& checkpoint, const std::string& before,
               const std::function<bool(const std::string&)>& wanted, const SurveyPorts& ports,
               GenerationFacts& facts);

}  // namespace reprise
