#pragma once
// The records of a small job, as a trainer would write them. The job has two ranks, a tensor split
// between them, a tensor that is whole on both, and an object. Its first life trains 2 steps,
// saves, and trains 1 step. Its second life loads and trains 1 step.

#include <algorithm>
#include <string>
#include <vector>

#include "core/base/hash.hpp"
#include "core/digest/witness_digest.hpp"
#include "driver/witness/program_judge.hpp"

namespace reprise::driver {

inline constexpr std::int64_t kRows = 4;

/// Returns the number in the given row of the tensor "w" after `step` steps.
inline std::uint32_t row_at(std::int64_t row, std::int64_t step) {
  return static_cast<std::uint32_t>(100 * step + row + 1);
}

inline std::uint64_t digest_of_rows(const std::string& key, std::int64_t from, std::int64_t count,
                                    std::int64_t step) {
  std::vector<std::uint32_t> rows;
  for (std::int64_t row = from; row < from + count; ++row) rows.push_back(row_at(row, step));
  return witness_digest(witness_key(key, "int32"), DType::kInt32, {kRows}, {{from}, {count}},
                        {reinterpret_cast<const std::byte*>(rows.data()), rows.size() * 4});
}

inline std::string box_json(std::int64_t from, std::int64_t count, std::uint64_t digest) {
  return R"({"at":[)" + std::to_string(from) + R"(],"size":[)" + std::to_string(count) +
         R"(],"digest":")" + hex(digest) + "\"}";
}

inline std::string state_line(const std::string& when, std::int64_t rank, std::int64_t step) {
  return R"({"what":"state","when":")" + when + R"(","step":)" + std::to_string(step) +
         R"(,"tensors":[{"key":"w","dtype":"int32","shape":[4],"boxes":[)" +
         box_json(2 * rank, 2, digest_of_rows("w", 2 * rank, 2, step)) +
         R"(],"holders":1},{"key":"b","dtype":"int32","shape":[4],"boxes":[)" +
         box_json(0, kRows, digest_of_rows("b", 0, kRows, step)) +
         R"(],"holders":2}],"objects":[{"key":"cursor","digest":")" +
         hex(static_cast<std::uint64_t>(step)) + "\"}]}\n";
}

inline std::string start_line(std::int64_t life, std::int64_t rank) {
  return R"({"what":"start","life":)" + std::to_string(life) + R"(,"rank":)" +
         std::to_string(rank) + R"(,"world":2,"layout":{"dp":2},"seed":1})" + "\n";
}

inline std::string step_line(std::int64_t rank, std::int64_t step) {
  const std::int64_t first = 4 * (step - 1) + 2 * rank;
  return R"({"what":"step","step":)" + std::to_string(step) + R"(,"loss":"0x1.)" +
         std::to_string(step) + R"(p+0","lr":"0x1p-)" + std::to_string(step) + R"(","samples":[)" +
         std::to_string(first) + "," + std::to_string(first + 1) + "]}\n";
}

inline const std::string kDone = "{\"what\":\"done\"}\n";

/// The witness files of the two lives and of the uninterrupted run, one file per rank in each case.
struct RecordedFiles {
  std::vector<std::string> first;
  std::vector<std::string> second;
  std::vector<std::string> control;

  RecordedFiles() {
    for (std::int64_t rank = 0; rank < 2; ++rank) {
      first.push_back(start_line(0, rank) + step_line(rank, 1) + step_line(rank, 2) +
                      state_line("save", rank, 2) + step_line(rank, 3) +
                      state_line("end", rank, 3) + kDone);
      second.push_back(start_line(1, rank) + state_line("loaded", rank, 2) + step_line(rank, 3) +
                       state_line("end", rank, 3) + kDone);
      control.push_back(start_line(0, rank) + step_line(rank, 1) + step_line(rank, 2) +
                        step_line(rank, 3) + state_line("end", rank, 3) + kDone);
    }
  }
};

inline StoredCheckpoint stored_at(std::int64_t step) {
  StoredCheckpoint stored{.directory = "step_" + std::to_string(step), .step = step};
  for (const char* key : {"w", "b"}) {
    stored.tensors[key] = {DType::kInt32, {kRows}, digest_of_rows(key, 0, kRows, step)};
  }
  stored.objects = {"cursor"};
  return stored;
}

inline ProgramPlan two_lives() {
  ProgramPlan plan;
  plan.trainer.name = "recorded";
  plan.trainer.axes = {"dp"};
  plan.lives.resize(2);
  plan.lives[0].layout = plan.lives[1].layout = {{"dp", 2}};
  plan.lives[0].steps = {{ProgramDoes::kTrain, 2}, {ProgramDoes::kSave}, {ProgramDoes::kTrain, 1}};
  plan.lives[1].steps = {{ProgramDoes::kTrain, 1}};
  plan.expect.loaded_step = 2;
  return plan;
}

inline LifeEvidence evidence_of(const ProgramLife& life, const std::vector<std::string>& files,
                                const std::vector<int>& exits = {0, 0}) {
  LifeEvidence evidence{.plan = life};
  for (const auto& text : files) {
    evidence.ranks.push_back(parse_witness(text, "rank.jsonl"));
    evidence.ends.push_back({.exit_code = exits.at(evidence.ends.size())});
  }
  return evidence;
}

/// Replaces the first occurrence of `from`, which must occur in the text.
inline void put(std::string& text, const std::string& from, const std::string& to) {
  text.replace(text.find(from), from.size(), to);
}

/// Everything that a verdict on a recorded run needs. Each test breaks one item of it.
struct RecordedRun {
  ProgramPlan plan = two_lives();
  RecordedFiles files;
  std::vector<StoredCheckpoint> stored = {stored_at(2)};
  std::vector<std::vector<int>> exits = {{0, 0}, {0, 0}};  ///< exit codes by life and rank
  bool again = false;  ///< true if the last life was run twice, with the same results

  std::vector<LifeEvidence> lives() const {
    std::vector<LifeEvidence> lives = {evidence_of(plan.lives[0], files.first, exits[0]),
                                       evidence_of(plan.lives[1], files.second, exits[1])};
    lives[0].after = lives[1].before = lives[1].after = stored;
    return lives;
  }

  Findings judged() const {
    const std::vector<LifeEvidence> lives = this->lives();
    const LifeEvidence control = evidence_of(plan.lives[0], files.control);
    ControlRuns controls;
    controls.uninterrupted = &control;
    if (again) controls.again[1] = &lives[1];
    return judge_program(plan, lives, controls);
  }
  /// Returns all findings as lines "CODE: text".
  std::string all() const {
    std::string text;
    for (const auto& finding : judged()) {
      text += std::string(name_of(finding.code)) + ": " + finding.text + "\n";
    }
    return text;
  }
  /// True if there is a finding with this code whose text contains `says`.
  bool found(const std::string& code, const std::string& says) const {
    const auto findings = judged();
    return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return name_of(finding.code) == code && finding.text.find(says) != std::string::npos;
    });
  }
  /// Returns the first finding as "CODE: text"; empty if there is none.
  std::string first() const {
    const auto findings = judged();
    if (findings.empty()) return "";
    return std::string(name_of(findings.front().code)) + ": " + findings.front().text;
  }
};

}  // namespace reprise::driver
