#include "properties/state_judge.hpp"
#include "properties/finding_code.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace reprise {
namespace {

/// Maximum number of adjacent wrong elements whose origin is determined together.
constexpr std::int64_t kRunMax = 8;

/// Returns how many adjacent elements differ, starting with the one at `at`. Counts no further than
/// `most`.
std::int64_t wrong_run(const Bytes& saved, const Bytes& loaded, std::size_t width, std::int64_t at,
                       std::int64_t most) {
  std::int64_t run = 1;
  for (; run < most; ++run) {
    const std::size_t next = static_cast<std::size_t>(at + run) * width;
    if (std::memcmp(saved.data() + next, loaded.data() + next, width) == 0) break;
  }
  return run;
}

class Judge {
 public:
  Judge(const GlobalState& saved, const JudgeOptions& options, StateEvidence& evidence)
      : saved_(saved), options_(options), evidence_(evidence) {}

  void tensors(const std::vector<TensorLeaf>& leaves) {
    std::vector<bool> seen(saved_.tensors.size());
    for (const auto& leaf : leaves) {
      const GlobalTensor* known = saved_.tensor(leaf.key);
      if (known != nullptr) seen[static_cast<std::size_t>(known - saved_.tensors.data())] = true;
      tensor(leaf, known);
    }
    for (std::size_t t = 0; t < seen.size(); ++t) {
      if (seen[t]) continue;
      const GlobalTensor& known = saved_.tensors[t];
      evidence_.absent.push_back(known.key);
      if (options_.expected == ExpectedTensors::kItsPart) continue;
      find(judged::kKeysetAsymmetry, known.key, "it was saved but the job does not have it");
    }
  }

  void objects(const std::vector<ObjectLeaf>& leaves) {
    for (const auto& leaf : leaves) {
      if (skipped(leaf.key)) continue;
      const std::string key = stored_key(leaf);
      const GlobalObject* known = saved_.object(key);
      if (known == nullptr) {
        find(judged::kLostObject, key, "the job has it but it was not saved");
      } else {
        value(key, known->value, leaf.value);
      }
    }
  }

  void common(const Value& loaded) {
    if (options_.comparable == nullptr) {
      value("common", saved_.common, loaded);
    } else {
      value("common", options_.comparable(saved_.common), options_.comparable(loaded));
    }
  }

 private:
  void find(FindingCode code, const std::string& key, std::string message,
            SourceLine line = SourceLine::here()) {
    evidence_.findings.push_back({code, key, std::move(message), evidence_.rank, line});
  }

  bool skipped(const std::string& key) const {
    const auto& keys = options_.skipped_objects;
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  }

  void value(const std::string& key, const Value& saved, const Value& loaded) {
    ++evidence_.values;
    const auto differing = differences(saved, loaded, 1);
    if (differing.empty()) return;
    const auto& first = differing.front();
    find(judged::kLostObject, key + first.path,
         "saved " + first.left + ", but the job has " + first.right);
  }

  /// Compares a leaf with the saved tensor of its key; null if there is none.
  void tensor(const TensorLeaf& leaf, const GlobalTensor* known) {
    if (known == nullptr) {
      return find(judged::kKeysetAsymmetry, leaf.key, "the job has it but it was not saved");
    }
    if (known->dtype != leaf.dtype) return find(Code::kDtypeDrift, leaf.key, "types differ");
    if (!(known->shape == leaf.shape)) {
      return find(
          Code::kShapeDrift, leaf.key,
          "saved " + to_string(known->shape) + ", but the job has " + to_string(leaf.shape));
    }
    ++evidence_.tensors;
    bool reported = false;
    for (const auto& piece : leaf.pieces) piece_of(*known, leaf, piece, reported);
  }

  void piece_of(const GlobalTensor& known, const TensorLeaf& leaf, const Piece& piece,
                bool& reported) {
    pack_elements(leaf, piece, loaded_elements_);
    pack_elements(known, piece.box, saved_elements_);
    const auto compared = compare_elements(leaf.dtype, saved_elements_.data(),
                                           loaded_elements_.data(), piece.box.elements());
    evidence_.compared.append(compared);
    if (!compared.first || reported) return;
    reported = true;
    report(leaf, piece.box, saved_elements_, loaded_elements_, *compared.first);
  }

  void report(const TensorLeaf& leaf, const Box& box, const Bytes& saved, const Bytes& loaded,
              std::int64_t at) {
    const std::size_t width = size_of(leaf.dtype);
    Dims index = index_at(at, box.extent);
    const std::int64_t row = box.ndim() == 0 ? 1 : box.extent[box.ndim() - 1];
    const std::int64_t run = wrong_run(saved, loaded, width, at, std::min(kRunMax, row - at % row));
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += box.offset[d];
    const std::size_t start = static_cast<std::size_t>(at) * width;
    const ByteSpan wrong(loaded.data() + start, static_cast<std::size_t>(run) * width);
    const Origin origin =
        origin_of(saved_, {leaf.key, index, leaf.dtype, wrong, leaf.pieces}, options_.suspects);
    const FirstMismatch first{evidence_.rank,
                              leaf.key,
                              index,
                              print_element(leaf.dtype, saved.data() + start),
                              print_element(leaf.dtype, wrong.data()),
                              origin.text};
    find(origin.code, leaf.key,
         "element " + to_string(index) + " was saved as " + first.saved + " and is " +
             first.loaded + "; it comes from " + origin.text,
         origin.line);
    if (!evidence_.first) evidence_.first = first;
  }

  const GlobalState& saved_;
  const JudgeOptions& options_;
  StateEvidence& evidence_;
  Bytes loaded_elements_;  ///< elements of the piece that is compared
  Bytes saved_elements_;   ///< the saved elements of the same box
};

}  // namespace

StateEvidence judge_state(const GlobalState& saved, const RankState& loaded,
                          const JudgeOptions& options) {
  StateEvidence evidence{.rank = loaded.rank};
  Judge judge(saved, options, evidence);
  judge.tensors(loaded.state->tensors);
  judge.objects(loaded.state->objects);
  judge.common(loaded.state->common);
  return evidence;
}

}  // namespace reprise
