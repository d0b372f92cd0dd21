#include "driver/programs/verification_card.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>

namespace reprise::driver {
namespace {

using reports::ScenarioResult;
using reports::TrainingPoint;

constexpr std::size_t kDateLength = 10;  // length of the date in an ISO 8601 time

/// Returns the points after the last load. They are the last points of the trajectory.
std::vector<TrainingPoint> resumed_points(const ScenarioResult& result) {
  auto points = result.trajectory;
  if (result.lives.empty()) return {};
  const auto& last = result.lives.back();
  const auto steps =
      static_cast<std::size_t>(std::max<std::int64_t>(0, last.last_step - last.first_step));
  if (points.size() > steps) {
    points.erase(points.begin(), points.end() - static_cast<std::ptrdiff_t>(steps));
  }
  return points;
}

std::string printed_loss(double loss) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", loss);
  return text;
}

/// Describes in words what the report claims.
std::string expected_result(const reports::Report& report, const ScenarioResult& result) {
  std::uint64_t elements = 0;
  for (const auto& rank : result.ranks) elements += rank.elements;
  std::string text;
  if (result.verdict != reports::Verdict::kPass) {
    text = std::string(reports::name_of(result.verdict)) + ": " + result.code + ": " +
           result.reason + ".";
  } else {
    text = "The run continues from step " + std::to_string(result.lives.back().first_step) +
           " to step " + std::to_string(result.lives.back().last_step) + " on " +
           std::to_string(result.world) + " ranks (" + result.layouts.back() +
           "). What was live at the save and what was loaded are the same bits, " +
           std::to_string(elements) +
           " elements over all ranks. What the ranks report of loss, learning rate, scale and "
           "gradient norm equals the reference in every bit at every step.";
  }
  for (const auto& claim : report.not_claimed) text += " Not claimed: " + claim + ".";
  return text;
}

void put_comparison(YAML::Emitter& out, const std::vector<TrainingPoint>& points, bool match) {
  out << YAML::Key << "metrics" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "initial_loss" << YAML::Value << printed_loss(points.front().loss);
  out << YAML::Key << "final_loss" << YAML::Value << printed_loss(points.back().loss);
  out << YAML::EndMap;
  out << YAML::Key << "resume_comparison" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "reference_item" << YAML::Value << "pretrain";
  out << YAML::Key << "sentinel_steps" << YAML::Value << YAML::Flow << YAML::BeginSeq
      << points.front().step << points.back().step << YAML::EndSeq;
  out << YAML::Key << "loss_relative_tolerance" << YAML::Value << 0;
  out << YAML::Key << "loss_absolute_tolerance" << YAML::Value << 0;
  out << YAML::Key << "sentinels_match" << YAML::Value << match;
  out << YAML::EndMap;
}

}  // namespace

std::string verification_card(const reports::Report& report) {
  const ScenarioResult& result = report.scenarios.front();
  const bool verified = result.verdict == reports::Verdict::kPass;
  const auto points = resumed_points(result);
  YAML::Emitter out;
  out << YAML::BeginMap << YAML::Key << "checkpoint_resume" << YAML::Value << YAML::BeginMap;
  out << YAML::Key << "status" << YAML::Value << (verified ? "verified" : "unverified");
  out << YAML::Key << "depends_on" << YAML::Value << "pretrain";
  out << YAML::Key << "command" << YAML::Value << result.replay;
  out << YAML::Key << "last_verified" << YAML::Value;
  if (verified) {
    out << report.started.substr(0, kDateLength);
  } else {
    out << YAML::Null;
  }
  if (!points.empty()) put_comparison(out, points, verified);
  out << YAML::Key << "expected_result" << YAML::Value << expected_result(report, result);
  out << YAML::EndMap << YAML::EndMap;
  return std::string(out.c_str()) + "\n";
}

}  // namespace reprise::driver
