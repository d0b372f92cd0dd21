#include "sim/job/rerun/rerun_log.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <sstream>

namespace reprise::sim {
namespace {

constexpr std::string_view kRestart = "restarted";

struct DeviceName {
  std::string node;
  std::string index;
};

DeviceName parts_of(std::string_view device) {
  const auto colon = device.rfind(':');
  if (colon == std::string_view::npos) return {std::string(device), "0"};
  return {std::string(device.substr(0, colon)), std::string(device.substr(colon + 1))};
}

std::string head(std::string_view device, std::string_view job_id) {
  const DeviceName parts = parts_of(device);
  return "ts=- node=" + parts.node + " device=" + parts.index + " jobID=" + std::string(job_id);
}

/// Returns the text between `name` and `next` in a line.
std::optional<std::string> field(std::string_view line, std::string_view name,
                                 std::string_view next) {
  const auto from = line.find(name);
  if (from == std::string_view::npos) return std::nullopt;
  const auto begin = from + name.size();
  const auto end = line.find(next, begin);
  if (end == std::string_view::npos) return std::nullopt;
  return std::string(line.substr(begin, end - begin));
}

std::optional<std::int64_t> number(const std::optional<std::string>& text) {
  if (!text) return std::nullopt;
  std::int64_t value = 0;
  const char* last = text->data() + text->size();
  const auto [end, error] = std::from_chars(text->data(), last, value);
  if (error != std::errc{} || end != last) return std::nullopt;
  return value;
}

/// Returns the status in lower case; also converts "RerunValidationStatus.FIRST_RERUN_REPRODUCIBLE"
/// to "first_rerun_reproducible".
std::string plain(std::string status) {
  status.erase(0, status.rfind('.') + 1);
  std::transform(status.begin(), status.end(), status.begin(),
                 [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return status;
}

bool counts(const std::string& status) {
  constexpr std::array kCounting = {RerunStatus::kRerunDisabled,
                                    RerunStatus::kFirstRerunReproducible,
                                    RerunStatus::kSecondRerunReproducible};
  return std::any_of(kCounting.begin(), kCounting.end(),
                     [&](RerunStatus one) { return status == name_of(one); });
}

struct Line {
  std::string job_id;
  std::int64_t rank = 0;
  std::int64_t iteration = 0;
  std::string status;
};

std::optional<Line> parse(std::string_view line) {
  const auto job_id = field(line, " jobID=", " rank=");
  const auto rank = number(field(line, " rank=", " iteration="));
  const auto iteration = number(field(line, " iteration=", " status="));
  const auto status = field(line, " status=", " result=");
  if (!line.starts_with("ts=") || !job_id || !rank || !iteration || !status) return std::nullopt;
  return Line{*job_id, *rank, *iteration, plain(*status)};
}

}  // namespace

std::string line_of(const RejectedResult& rejected) {
  std::ostringstream out;
  out << head(rejected.device, rejected.job_id) << " rank=" << rejected.rank.value
      << " iteration=" << rejected.iteration << " status=" << name_of(rejected.status)
      << " result=" << rejected.result << " message='" << rejected.message << "'";
  return out.str();
}

std::string restart_line(std::string_view device, std::string_view job_id, GlobalRank rank,
                         std::int64_t iteration) {
  return head(device, job_id) + " rank=" + std::to_string(rank.value) +
         " iteration=" + std::to_string(iteration) + " status=" + std::string(kRestart) +
         " result=- message='run again from a checkpoint'";
}

std::int64_t restarts_in(std::span<const std::string> lines, std::int64_t iteration) {
  return std::count_if(lines.begin(), lines.end(), [&](const std::string& text) {
    const auto line = parse(text);
    return line && line->status == kRestart && line->iteration == iteration;
  });
}

std::vector<std::int64_t> iterations_to_skip(std::span<const std::string> lines) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> seen;  // by iteration and rank
  std::map<std::pair<std::int64_t, std::string>, std::set<std::int64_t>> ranks;  // failed ranks
  for (const auto& text : lines) {
    const auto line = parse(text);
    if (!line || !counts(line->status)) continue;
    ++seen[{line->iteration, line->rank}];
    ranks[{line->iteration, line->job_id}].insert(line->rank);
  }
  std::set<std::int64_t> skipped;
  for (const auto& [place, times] : seen) {
    if (times > 1) skipped.insert(place.first);
  }
  for (const auto& [place, failed] : ranks) {
    if (failed.size() > 1) skipped.erase(place.first);
  }
  return {skipped.begin(), skipped.end()};
}

}  // namespace reprise::sim
