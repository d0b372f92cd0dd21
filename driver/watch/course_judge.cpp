#include "driver/watch/course_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/base/print.hpp"
#include "driver/watch/finding_book.hpp"

namespace reprise::driver {
namespace {

/// Losses of one step that are added in another order differ by less than this, relatively.
constexpr double kRounding = 1e-5;

double number(const std::string& hex) { return std::strtod(hex.c_str(), nullptr); }

/// Returns numbers as decimal ones, for people.
std::string numbers(const std::vector<std::string>& hex, int digits) {
  std::vector<std::string> values;
  for (const auto& text : hex) values.push_back(fmt::format("{:.{}g}", number(text), digits));
  return values.empty() ? "none" : join(values, " ");
}

/// Returns "A instead of B", with as many digits as show the difference.
std::string instead(const std::vector<std::string>& own, const std::vector<std::string>& wanted) {
  constexpr int kFew = 6;
  constexpr int kAll = 17;
  const int digits = numbers(own, kFew) == numbers(wanted, kFew) ? kAll : kFew;
  return numbers(own, digits) + " instead of " + numbers(wanted, digits);
}

bool close(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(number(a[i]) - number(b[i]));
    if (!(difference <= kRounding * std::abs(number(b[i])))) return false;
  }
  return true;
}

bool ends_with(const std::vector<std::string>& all, const std::vector<std::string>& last) {
  return !last.empty() && last.size() <= all.size() &&
         std::equal(last.rbegin(), last.rend(), all.rbegin());
}

bool is_finite(const std::string& text) { return std::isfinite(number(text)); }

class CourseJudge {
 public:
  CourseJudge(const ResumedLife& lives, const CourseLimits& course, WatchJudgement& judgement)
      : lives_(lives), course_(course), judgement_(judgement) {}

  CourseFindings run() {
    for (const auto& [rank, after] : lives_.resumed.ranks) {
      const auto at = lives_.uninterrupted.ranks.find(rank);
      if (at == lives_.uninterrupted.ranks.end()) continue;
      const auto number = static_cast<std::int32_t>(rank);
      compare_steps(number, at->second, after);
      compare_lengths(number, at->second, after);
      compare_saves(number, at->second, after);
    }
    return {data_.take(),    rates_.take(), losses_.take(),
            lengths_.take(), saves_.take(), different_ > 0 && different_ == rounded_};
  }

 private:
  void compare_steps(std::int32_t rank, const RankRecording& before, const RankRecording& after) {
    bool data = false;
    bool losses = false;
    bool lr = false;
    for (const auto& [own_step, own] : after.steps) {
      const std::int64_t step = course_.from + own_step;
      const auto at = before.steps.find(step);
      if (at == before.steps.end()) continue;
      const WatchedStep& wanted = at->second;
      if (!wanted.inputs.empty()) judgement_.counts.data_steps.insert(step);
      if (std::ranges::any_of(wanted.losses, is_finite)) judgement_.counts.loss_steps.insert(step);
      // A save in the middle of an accumulation: the resumed life makes the rest of that step.
      const bool rest = own_step == 1 && own.inputs.size() < wanted.inputs.size() &&
                        ends_with(wanted.inputs, own.inputs);
      if (!data && own.inputs != wanted.inputs && !rest) {
        add(data_, rank, step, judged::kDataStreamSkip, data_text(before, own.inputs, step),
            join(wanted.inputs, " "), join(own.inputs, " "));
        data = true;
      }
      if (!lr && own.lr != wanted.lr) {
        add(rates_, rank, step, judged::kScheduleDrift,
            "learning rate " + instead(own.lr, wanted.lr), join(wanted.lr, " "), join(own.lr, " "));
        lr = true;
      }
      if (!losses && own.losses != wanted.losses &&
          !(rest && ends_with(wanted.losses, own.losses))) {
        add(losses_, rank, step, judged::kTrajectoryDivergence,
            "loss " + instead(own.losses, wanted.losses), join(wanted.losses, " "),
            join(own.losses, " "));
        ++different_;
        if (own_step > 1 && close(own.losses, wanted.losses)) ++rounded_;
        losses = true;
      }
    }
  }

  /// Says whose data a step took.
  std::string data_text(const RankRecording& before, const std::vector<std::string>& inputs,
                        std::int64_t step) const {
    if (inputs.empty()) return "takes no data";
    for (const auto& [other, own] : before.steps) {
      if (own.inputs != inputs) continue;
      return "takes the data of step " + std::to_string(other) +
             (other <= course_.from ? " again" : " too early");
    }
    for (const auto& [rank, other] : lives_.uninterrupted.ranks) {
      const auto at = other.steps.find(step);
      if (at != other.steps.end() && at->second.inputs == inputs) {
        return "takes the data of rank " + std::to_string(rank);
      }
    }
    return "takes data that the uninterrupted run never took";
  }

  void compare_lengths(std::int32_t rank, const RankRecording& before, const RankRecording& after) {
    if (!course_.to_the_end) return;
    const std::int64_t left = before.last_step() - course_.from;
    if (after.last_step() == left) return;
    lengths_.add(rank, {.code = judged::kScheduleDrift,
                        .where = "steps",
                        .text = "makes " + counted(count_of(after.last_step()), "step") +
                                ", not the " + std::to_string(left) + " that are left of " +
                                std::to_string(before.last_step()),
                        .life = lives_.life,
                        .step = course_.from});
  }

  static std::uint64_t count_of(std::int64_t steps) { return static_cast<std::uint64_t>(steps); }

  void compare_saves(std::int32_t rank, const RankRecording& before, const RankRecording& after) {
    for (const auto& save : after.saves) {
      if (save.aside || save.step == 0) continue;
      const std::int64_t step = course_.from + save.step;
      const Transfer* const other = save_in(before, step, save);
      if (other != nullptr) {
        compare_leaves(rank, step, *other, save);
      } else if (step <= before.last_step() && any_save_in(before, save)) {
        add_save(rank, step, save, "saved after step ", ", where life A saves none");
      }
    }
    for (const auto& save : before.saves) {
      const std::int64_t own = save.step - course_.from;
      if (save.aside || own <= 0 || own > after.last_step()) continue;
      if (own == after.last_step() && !course_.to_the_end) continue;  // it was killed there
      if (save_in(after, own, save) == nullptr && any_save_in(after, save)) {
        add_save(rank, save.step, save, "not saved after step ", ", where life A saves it");
      }
    }
  }

  static bool same_file(const Transfer& a, const Transfer& b) {
    return a.by == b.by && a.path == b.path && !a.aside;
  }

  static const Transfer* save_in(const RankRecording& rank, std::int64_t step,
                                 const Transfer& save) {
    const auto at = std::ranges::find_if(rank.saves, [&](const Transfer& other) {
      return other.step == step && same_file(other, save);
    });
    return at == rank.saves.end() ? nullptr : &*at;
  }

  static bool any_save_in(const RankRecording& rank, const Transfer& save) {
    return std::ranges::any_of(rank.saves,
                               [&](const Transfer& other) { return same_file(other, save); });
  }

  void add_save(std::int32_t rank, std::int64_t step, const Transfer& save, const std::string& what,
                const std::string& where) {
    saves_.add_name(rank, save.path,
                    finding_at(step, judged::kContentDiffers, what + std::to_string(step) + where));
  }

  void compare_leaves(std::int32_t rank, std::int64_t step, const Transfer& wanted,
                      const Transfer& save) {
    for (const auto& [name, value] : wanted.leaves) {
      if (course_.leaf_noise.contains(name)) continue;
      const auto own = save.leaves.find(name);
      if (own != save.leaves.end() && own->second == value) continue;
      WatchFinding finding = finding_at(
          step, judged::kContentDiffers,
          own == save.leaves.end() ? "not in the save after step " + std::to_string(step)
                                   : "saved with other content after step " + std::to_string(step));
      finding.expected = value;
      finding.found = own == save.leaves.end() ? "" : own->second;
      saves_.add_name(rank, name, std::move(finding));
    }
  }

  WatchFinding finding_at(std::int64_t step, FindingCode code, const std::string& text) {
    WatchFinding finding{.code = code, .text = text, .life = lives_.life, .step = step};
    if (step <= course_.repeated_to) return finding;
    judgement_.wants_repeat = true;
    finding.severity = Severity::kInconclusive;
    finding.text += ", which only one run shows: two runs agree up to step " +
                    std::to_string(course_.repeated_to);
    return finding;
  }

  void add(FindingBook& book, std::int32_t rank, std::int64_t step, FindingCode code,
           const std::string& text, const std::string& expected, const std::string& found) {
    WatchFinding finding = finding_at(step, code, text);
    finding.where = "step " + std::to_string(step);
    finding.expected = expected;
    finding.found = found;
    book.add(rank, std::move(finding));
  }

  const ResumedLife& lives_;
  const CourseLimits& course_;
  WatchJudgement& judgement_;
  FindingBook data_;
  FindingBook rates_;
  FindingBook losses_;
  FindingBook lengths_;
  FindingBook saves_;
  std::size_t different_ = 0;  ///< ranks with another loss
  std::size_t rounded_ = 0;    ///< of these, those whose first other loss is close
};

}  // namespace

CourseFindings compare_courses(const ResumedLife& lives, const CourseLimits& course,
                               WatchJudgement& judgement) {
  return CourseJudge(lives, course, judgement).run();
}

}  // namespace reprise::driver
