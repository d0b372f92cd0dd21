#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "core/base/print.hpp"
#include "reports/pages/chart.hpp"
#include "reports/pages/escape.hpp"
#include "reports/pages/facts.hpp"
#include "reports/pages/grid.hpp"
#include "reports/pages/picture.hpp"
#include "reports/pages/pictures.hpp"

namespace reprise::reports {
namespace {

constexpr std::size_t kLivesMax = 40;
constexpr std::size_t kRankRowsMax = 64;
constexpr std::size_t kRankColumnsMax = 32;

/// Returns text such as "life 1, tp2 dp2: failed with TORN_FILE, exit code 1, steps 2 to 4".
std::string life_line(const Incarnation& life, std::size_t number) {
  std::string line =
      "life " + std::to_string(number) + ", " + life.layout + ": " + name_of(life.outcome);
  std::replace(line.begin(), line.end(), '_', ' ');
  if (!life.code.empty()) line += " with " + life.code;
  if (life.exit_code != 0) line += ", exit code " + std::to_string(life.exit_code);
  return line + ", steps " + std::to_string(life.first_step) + " to " +
         std::to_string(life.last_step);
}

std::string fault_line(const FaultResult& fault) {
  const char* end = fault.fired     ? "fired"
                    : fault.reached ? "reached, not fired"
                    : fault.armed   ? "armed, not reached"
                                    : "not armed";
  return fault.kind + " on rank " + std::to_string(fault.rank) + ": " + end +
         (fault.must_fire || fault.fired ? "" : " (optional)");
}

//  life 0, tp2 dp2: ran, steps 0 to 3
//  [======]
//  life 1, tp4: failed with ZERO_FILL, exit code 1, steps 3 to 5
//         [====]
//  0   1   2   3   4   5   step
//  * crash on rank 1: fired
class Lives {
 public:
  explicit Lives(const ScenarioResult& result)
      : result_(result),
        shown_(std::min(result.incarnations.size(), kLivesMax)),
        picture_("Lives of " + result.name, description()) {
    // They are doubles, because a damaged report may hold any steps.
    for (const auto& life : result.incarnations) {
      for (const auto step : {life.first_step, life.last_step}) {
        first_ = std::min(first_, static_cast<double>(step));
        last_ = std::max(last_, static_cast<double>(step));
      }
    }
    if (last_ <= first_) last_ = first_ + 1;
  }

  std::string svg() {
    double y = 14;
    for (std::size_t i = 0; i < shown_; ++i) {
      const Incarnation& life = result_.incarnations[i];
      const std::string line = life_line(life, i);
      write({kEdge, y}, line, "");
      const double begin = x_of(static_cast<double>(life.first_step));
      const double end = std::max(x_of(static_cast<double>(life.last_step)), begin + 6);
      picture_.box({{begin, y + 5}, end - begin, 11}, "life " + name_of(life.outcome), 1, line);
      y += 34;
    }
    draw_steps(y);
    y += 24;
    for (const auto& fault : result_.faults) {
      const std::string line = fault_line(fault);
      picture_.dot({kEdge + 4, y - 4}, fault.fired ? "fault" : "fault idle", line);
      write({kEdge + 14, y}, line, fault.fired ? "fault" : "");
      y += 16;
    }
    return picture_.svg(width_, y);
  }

 private:
  static constexpr double kWidth = 340;
  static constexpr double kEdge = 8;
  static constexpr std::size_t kLineMax = 160;

  std::string description() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < shown_; ++i) {
      lines.push_back(life_line(result_.incarnations[i], i));
    }
    for (const auto& fault : result_.faults) lines.push_back(fault_line(fault));
    return join(lines, "; ");
  }

  void write(Point at, const std::string& line, std::string_view look) {
    const std::string words = clipped(line, kLineMax);
    width_ = std::max(width_, at.x + width_of(words) + kEdge);
    picture_.text(at, words, look);
  }

  double x_of(double step) const {
    return kEdge + (kWidth - 2 * kEdge) * (step - first_) / (last_ - first_);
  }

  void draw_steps(double y) {
    picture_.line({kEdge, y - 8}, {kWidth - kEdge, y - 8}, "axis");
    for (const double tick : ticks_between(first_, last_, 6)) {
      if (tick != std::floor(tick)) continue;
      const double x = x_of(tick);
      picture_.line({x, y - 8}, {x, y - 4}, "axis");
      picture_.text({x, y + 8}, brief(tick), "middle quiet");
    }
  }

  const ScenarioResult& result_;
  std::size_t shown_;
  Picture picture_;
  double first_ = std::numeric_limits<double>::infinity();
  double last_ = -std::numeric_limits<double>::infinity();
  double width_ = kWidth;  ///< grows with the longest line
};

constexpr std::array kTroubles = {"other bits", "not stored", "not asked", "shape", "dtype"};
using Troubles = std::array<std::uint64_t, kTroubles.size()>;

std::uint64_t unexcused_of(const std::vector<std::string>& keys, const RankResult& rank) {
  return static_cast<std::uint64_t>(std::ranges::count_if(keys, [&](const std::string& key) {
    return std::ranges::find(rank.excused, key) == rank.excused.end();
  }));
}

Troubles troubles_of(const RankResult& rank) {
  return {rank.bit_mismatches, unexcused_of(rank.not_stored, rank),
          unexcused_of(rank.not_requested, rank), unexcused_of(rank.shape_mismatches, rank),
          unexcused_of(rank.dtype_mismatches, rank)};
}

/// Adjacent ranks with equal counts.
struct RankRow {
  std::int32_t first = 0;
  std::int32_t last = 0;
  Troubles troubles = {};

  std::string name() const {
    if (first == last) return "rank " + std::to_string(first);
    return "ranks " + std::to_string(first) + "-" + std::to_string(last);
  }
};

std::vector<RankRow> rank_rows_of(const ScenarioResult& result) {
  std::vector<RankRow> rows;
  for (const auto& rank : result.ranks) {
    const Troubles troubles = troubles_of(rank);
    if (!rows.empty() && rows.back().troubles == troubles) {
      rows.back().last = rank.rank;
    } else {
      rows.push_back({rank.rank, rank.rank, troubles});
    }
  }
  return rows;
}

/// Returns a count in at most seven letters: "12345", "1.2e+09".
std::string short_count(std::uint64_t count) {
  return count < 1'000'000 ? std::to_string(count) : brief(std::floor(static_cast<double>(count)));
}

/// Returns the codes of all findings, the scenario's own first, the others sorted.
std::vector<std::string> codes_of(const WrongKeys& wrong, const std::string& own) {
  std::set<std::string> others;
  for (const auto& one : wrong.keys) {
    if (one.code != own) others.insert(one.code);
  }
  std::vector<std::string> codes = {own};
  codes.insert(codes.end(), others.begin(), others.end());
  return codes;
}

std::vector<std::int32_t> ranks_of(const WrongKeys& wrong) {
  std::set<std::int32_t> ranks;
  for (const auto& one : wrong.keys) ranks.insert(one.ranks.begin(), one.ranks.end());
  return {ranks.begin(), ranks.end()};
}

/// Returns a grid of keys and these ranks. A cell has the numbers of the codes found there.
Grid wrong_keys_grid(const WrongKeys& wrong, const std::vector<std::string>& codes,
                     std::span<const std::int32_t> ranks) {
  Grid grid{.cell_width = 26, .name_max = 90};
  for (const auto rank : ranks) grid.columns.push_back("rank " + std::to_string(rank));
  std::vector<std::string> said;
  for (const auto& one : wrong.keys) {
    if (grid.rows.empty() || grid.rows.back() != one.key) {
      grid.rows.push_back(one.key);
      grid.cells.emplace_back(ranks.size());
    }
    const auto code = std::ranges::find(codes, one.code) - codes.begin();
    said.push_back(one.key + ": " + one.code + " on " + ranks_text(one.ranks));
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (!std::ranges::binary_search(one.ranks, ranks[r])) continue;
      GridCell& cell = grid.cells.back()[r];
      cell.look = "heat";
      cell.strength = std::max(cell.strength, code == 0 ? 1.0 : 0.5);
      cell.text += (cell.text.empty() ? "" : ",") + std::to_string(code + 1);
      cell.hint += (cell.hint.empty() ? "" : "; ") + said.back();
    }
  }
  grid.description = join_first(said, 20);
  return grid;
}

bool differs(const TrainingPoint& point) {
  return point.uninterrupted_loss && !(*point.uninterrupted_loss == point.loss);
}

}  // namespace

std::string lives_figure(const ScenarioResult& result) {
  if (result.incarnations.empty()) return "";
  std::string caption = "Lives over the steps that they trained";
  if (!result.faults.empty()) caption += ", and the planned faults; a fault that fired is red";
  if (result.incarnations.size() > kLivesMax) {
    caption += "; " + std::to_string(result.incarnations.size() - kLivesMax) + " more lives";
  }
  return figure(Lives(result).svg(), caption + ".");
}

std::string ranks_figure(const ScenarioResult& result) {
  auto rows = rank_rows_of(result);
  Troubles worst = {};
  for (const auto& row : rows) {
    for (std::size_t k = 0; k < worst.size(); ++k) worst[k] = std::max(worst[k], row.troubles[k]);
  }
  if (worst == Troubles{}) return "";
  const std::size_t cut = rows.size() > kRankRowsMax ? rows.size() - kRankRowsMax : 0;
  rows.resize(rows.size() - cut);
  Grid grid{.title = "Trouble on each rank of " + result.name,
            .columns = {kTroubles.begin(), kTroubles.end()},
            .cell_width = 66,
            .upright = false};
  std::vector<std::string> said;
  for (const auto& row : rows) {
    grid.rows.push_back(row.name());
    auto& cells = grid.cells.emplace_back();
    for (std::size_t k = 0; k < kTroubles.size(); ++k) {
      const std::uint64_t count = row.troubles[k];
      const double part = worst[k] == 0 ? 0
                                        : std::log1p(static_cast<double>(count)) /
                                              std::log1p(static_cast<double>(worst[k]));
      const std::string hint = row.name() + ", " + kTroubles[k] + ": " + with_commas(count);
      if (count > 0) said.push_back(hint);
      cells.push_back({count == 0 ? "0" : short_count(count), part, "heat", hint});
    }
  }
  grid.description = join_first(said, 20);
  std::string caption =
      "What is wrong on each rank: elements with different bits, keys that are not stored, stored "
      "keys that nobody requested, and different shapes and dtypes. Excused keys are left out.";
  if (cut > 0) caption += " " + std::to_string(cut) + " more rows are left out.";
  return figure(draw(grid), caption);
}

std::string wrong_keys_figure(const ScenarioResult& result) {
  if (!result.failure || !result.failure->wrong_keys) return "";
  const WrongKeys& wrong = *result.failure->wrong_keys;
  const auto codes = codes_of(wrong, result.code);
  const auto ranks = ranks_of(wrong);
  const std::size_t shown = std::min(ranks.size(), kRankColumnsMax);
  std::string caption = "Wrong keys on each rank, in life " + std::to_string(wrong.life) + ".";
  for (std::size_t c = 0; c < codes.size(); ++c) {
    caption += " " + std::to_string(c + 1) + " is " + codes[c] + (c == 0 ? ", the verdict." : ".");
  }
  if (wrong.left_out > 0) {
    caption += " " + with_commas(wrong.left_out) + " more findings are left out.";
  }
  if (shown < ranks.size()) {
    caption += " " + std::to_string(ranks.size() - shown) + " more ranks are left out.";
  }
  Grid grid = wrong_keys_grid(wrong, codes, {ranks.data(), shown});
  grid.title = "Wrong keys on each rank of " + result.name;
  return figure(draw(grid), caption);
}

std::string loss_figure(const ScenarioResult& result) {
  if (std::ranges::none_of(result.trajectory, differs)) return "";
  Curve own{.name = "this run", .look = "a", .points = {}};
  Curve other{.name = "uninterrupted", .look = "b", .points = {}};
  Curve apart{.name = "differs", .look = "mark", .points = {}};
  for (const auto& point : result.trajectory) {
    const auto step = static_cast<double>(point.step);
    own.points.push_back({step, point.loss});
    if (differs(point)) apart.points.push_back({step, point.loss});
    if (point.uninterrupted_loss) other.points.push_back({step, *point.uninterrupted_loss});
  }
  const Chart chart{.title = "Loss of " + result.name,
                    .description = loss_sentence(result),
                    .x_name = "step",
                    .y_name = "loss",
                    .curves = {own, other, apart}};
  const std::string svg = draw(chart);
  return svg.empty() ? "" : figure(svg, loss_sentence(result));
}

std::string loss_sentence(const ScenarioResult& result) {
  const TrainingPoint* first = nullptr;
  std::uint64_t different = 0;
  std::uint64_t compared = 0;
  for (const auto& point : result.trajectory) {
    if (point.uninterrupted_loss) ++compared;
    if (!differs(point)) continue;
    ++different;
    if (first == nullptr) first = &point;
  }
  if (compared == 0) return "The loss was not compared with the uninterrupted run at any step.";
  if (first == nullptr) {
    return "The loss of " + counted(compared, "step") + " equals that of the uninterrupted run.";
  }
  return "The loss of " + with_commas(different) + " of " + counted(compared, "step") +
         " differs from the uninterrupted run, first at step " + std::to_string(first->step) +
         ": " + shortest(first->loss) + " instead of " + shortest(*first->uninterrupted_loss) + ".";
}

}  // namespace reprise::reports
