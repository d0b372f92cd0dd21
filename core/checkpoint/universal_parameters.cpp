#include "core/checkpoint/universal_parameters.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/print.hpp"

namespace reprise {
namespace {

constexpr std::string_view kZero = "zero";
constexpr std::string_view kWeights = "fp32";
constexpr std::string_view kStep = "step";

class Judge {
 public:
  explicit Judge(const UniversalParameters& parameters) : all_(parameters) {}

  Findings judge() {
    judge_states();
    judge_named();
    judge_model_files();
    return std::move(findings_);
  }

 private:
  void find(Severity severity, Code code, std::string message, const std::string& key,
            const std::string& file) {
    findings_.push_back({severity, code, std::move(message), key, file});
  }
  void fail(Code code, std::string message, const std::string& key, const std::string& file) {
    find(Severity::kError, code, std::move(message), key, file);
  }

  static std::string directory_of(const std::string& parameter) {
    return std::string(kZero) + "/" + parameter;
  }

  /// Returns the shape of the parameter's weights; nothing if they are missing or can't be read.
  static std::optional<Dims> weights_of(const std::map<std::string, std::optional<Dims>>& states) {
    const auto found = states.find(std::string(kWeights));
    return found == states.end() ? std::nullopt : found->second;
  }

  void judge_states() {
    std::set<std::string> everywhere = {std::string(kWeights)};
    for (const auto& [parameter, states] : all_.states) {
      for (const auto& [state, shape] : states) everywhere.insert(state);
    }
    for (const auto& [parameter, states] : all_.states) {
      const auto weights = weights_of(states);
      for (const std::string& state : everywhere) {
        const auto found = states.find(state);
        const std::string key = parameter + "." + state;
        if (found == states.end()) {
          fail(Code::kCoverageGap,
               "the file is missing; other parameters have theirs, and DeepSpeed would go on "
               "without",
               key, directory_of(parameter));
        } else if (state != kStep && !all_.unread.contains(key)) {
          judge_state(key, directory_of(parameter) + "/" + state + ".pt", found->second, weights);
        }
      }
    }
  }

  void judge_state(const std::string& key, const std::string& file,
                   const std::optional<Dims>& shape, const std::optional<Dims>& weights) {
    if (!shape) return fail(Code::kCoverageGap, "the file has no tensor `param`", key, file);
    if (weights && !(*shape == *weights)) {
      fail(Code::kShapeDrift,
           "a state of shape " + to_string(*shape) + ", but the parameter's " +
               std::string(kWeights) + ".pt has shape " + to_string(*weights),
           key, file);
    }
  }

  /// True if parts of these shapes, one of each model rank, can be what was made one tensor.
  bool can_be_made_of(const std::string& parameter, const Dims& whole,
                      const std::vector<Dims>& parts) const {
    const Dims& first = parts.front();
    if (first.size() != whole.size()) return false;
    const bool without_padding = all_.vocabularies.contains(parameter) && !whole.empty();
    std::size_t differ = 0;
    for (std::size_t d = 0; d < whole.size(); ++d) {
      std::int64_t sum = 0;
      bool same = true;
      for (const Dims& part : parts) {
        if (part.size() != whole.size() || __builtin_add_overflow(sum, part[d], &sum)) return false;
        same = same && part[d] == whole[d];
      }
      if (same) continue;
      ++differ;
      if (whole[d] != sum && !(without_padding && d == 0 && whole[d] < sum)) return false;
    }
    return differ <= 1;
  }

  void judge_named() {
    for (const auto& [parameter, shapes] : all_.named) {
      const auto states = all_.states.find(parameter);
      if (states == all_.states.end()) {
        fail(Code::kCoverageGap, "the model has this parameter, but zero/ has no directory of it",
             parameter, std::string(kZero));
        continue;
      }
      const auto weights = weights_of(states->second);
      if (!weights || can_be_made_of(parameter, *weights, shapes)) continue;
      fail(Code::kShapeDrift,
           "fp32.pt has shape " + to_string(*weights) + ", but param_shapes of " +
               counted(shapes.size(), "file") + " mp_rank_*_model_states.pt " +
               (shapes.size() == 1 ? "says " : "say ") + to_string(shapes.front()) +
               (shapes.size() == 1 ? "" : " of each rank's part"),
           parameter, directory_of(parameter) + "/fp32.pt");
    }
  }

  void judge_model_files() {
    const std::string missing = "mp_rank_*_model_states.pt";
    if (all_.model_ranks.empty()) {
      return fail(Code::kNotFound,
                  "no file " + missing +
                      ": DeepSpeed needs it, and it says which parameters there "
                      "are",
                  "", "");
    }
    const std::int64_t count =
        std::max<std::int64_t>(all_.model_ranks_in_all.value_or(0), *all_.model_ranks.rbegin() + 1);
    const auto there = static_cast<std::int64_t>(all_.model_ranks.size());
    if (there < count) {
      fail(Code::kNotFound,
           "there are the files only of " + with_commas(static_cast<std::uint64_t>(there)) +
               " of " + with_commas(static_cast<std::uint64_t>(count)) + " model ranks: " + missing,
           "", "");
    }
    note_unnamed();
  }

  void note_unnamed() {
    std::vector<std::string> unnamed;
    std::map<std::string, std::size_t> of_shape;
    std::size_t alike = 0;
    for (const auto& [parameter, states] : all_.states) {
      if (!all_.named.contains(parameter)) unnamed.push_back(parameter);
      if (const auto weights = weights_of(states)) {
        alike = std::max(alike, ++of_shape[to_string(*weights)]);
      }
    }
    if (!unnamed.empty()) {
      find(Severity::kNote, Code::kNotStored,
           "param_shapes of no file mp_rank_*_model_states.pt names " +
               counted(unnamed.size(), "parameter") +
               " of zero/, so nothing says if they belong "
               "to the model: " +
               join_first(unnamed),
           "", std::string(kZero));
    }
    if (alike > 1) {
      find(Severity::kNote, Code::kNotStored,
           "only the name of a directory says which parameter it is of: two of the same shape that "
           "were swapped could not be detected",
           "", std::string(kZero));
    }
  }

  const UniversalParameters& all_;
  Findings findings_;
};

}  // namespace

std::optional<Dims> shape_in(const Value& value) {
  const auto* size = value.as<Object>();
  if (size == nullptr || size->type.module != "torch" || size->type.name != "Size") return {};
  const Tuple* extents = size->args.size() == 1 ? size->args[0].as<Tuple>() : nullptr;
  if (extents == nullptr || extents->items.size() > kMaxNdim) return std::nullopt;
  Dims shape;
  for (const Value& item : extents->items) {
    const auto* extent = item.as<std::int64_t>();
    if (extent == nullptr || *extent < 0) return std::nullopt;
    shape.push_back(*extent);
  }
  return shape;
}

Findings judge_universal(const UniversalParameters& parameters) {
  return Judge(parameters).judge();
}

}  // namespace reprise
