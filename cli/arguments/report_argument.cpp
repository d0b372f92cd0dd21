#include "cli/arguments/report_argument.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "cli/arguments/checkpoint_argument.hpp"
#include "core/base/bytes.hpp"
#include "core/base/sha256.hpp"
#include "core/ports/store_path.hpp"
#include "core/ports/whole_file.hpp"
#include "reports/read_error.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

constexpr std::uint64_t kReportBytesMax = std::uint64_t{1} << 30;

void warn_of_unknown(const reports::UnknownField& field, const std::string& file,
                     std::ostream& err) {
  const std::string times = field.count == 1 ? "" : fmt::format(" ({} times)", field.count);
  err << fmt::format("warning: {}: the unknown field '{}'{} was ignored\n", file, field.path,
                     times);
}

}  // namespace

std::string report_text(const std::string& argument) {
  const StoredPath stored = stored_path(argument);
  const auto entry = stored.store->stat(stored.path);
  const bool directory = entry && entry->directory;
  const std::string path = directory ? join_path(stored.path, "report.json") : stored.path;
  return std::string(as_text(read_all(*stored.store, path, kReportBytesMax)));
}

std::string without_file(const std::string& message, const std::string& file) {
  return message.starts_with(file + ": ") ? message.substr(file.size() + 2) : message;
}

ReadReport read_report(const std::string& argument, std::ostream& err) {
  ReadReport read{.text = report_text(argument), .report = {}};
  read.report = reports::parse_report(read.text, argument);
  for (const auto& field : unknown_fields(read.text, argument, read.report)) {
    warn_of_unknown(field, argument, err);
  }
  return read;
}

reports::Submission read_submission(const std::string& argument, std::ostream& err) {
  reports::Submission submission{.file = argument};
  try {
    auto [text, report] = read_report(argument, err);
    submission.sha256 = hex(sha256_of(as_bytes(text)));
    submission.report = std::move(report);
  } catch (const reports::NewerError& error) {
    submission.unreadable = without_file(error.what(), argument);
    submission.newer = true;
  } catch (const reports::ReadError& error) {
    submission.unreadable = without_file(error.what(), argument);
  } catch (const Error& error) {
    submission.unreadable =
        error.code() == Code::kNotFound
            ? "is missing: there is neither such a file nor a directory with a report.json"
            : "can't be read: " + error.message();
  }
  return submission;
}

Error unreadable_report(const reports::Submission& submission) {
  if (!submission.newer) {
    return Error(Code::kTornFile, "the report " + submission.unreadable, {.file = submission.file});
  }
  return Error(Code::kUnsupported,
               "the report's " + submission.unreadable + ": " + reports::kReadNewer,
               {.file = submission.file});
}

std::vector<std::string> reports_named(const std::vector<std::string>& arguments,
                                       const std::string& option) {
  namespace fs = std::filesystem;
  std::vector<std::string> named;
  for (const auto& argument : arguments) {
    const bool folder = fs::is_directory(argument) && !fs::exists(argument + "/report.json");
    if (!folder) {
      named.push_back(argument);
      continue;
    }
    std::set<std::string> found;
    for (const auto& entry : fs::directory_iterator(argument)) {
      if (fs::exists(entry.path() / "report.json")) found.insert(entry.path().string());
    }
    if (found.empty()) {
      throw Error(Code::kNotFound,
                  (option.empty() ? "" : option + ": ") +
                      "there is neither a report.json nor a folder with one",
                  {.file = argument});
    }
    named.insert(named.end(), found.begin(), found.end());
  }
  return named;
}

}  // namespace reprise::cli
