#pragma once
// Reads a report named on the command line: a report.json, or the directory that holds it.

#include <ostream>
#include <string>
#include <vector>

#include "reports/evidence.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {

/// Reads a file. If the argument is a directory, reads report.json there. Throws NOT_FOUND if there
/// is no such file, and LIMIT if it is larger than 1 GiB.
std::string report_text(const std::string& argument);

/// Removes the file's name and the colon after it from the start of a message, for callers that
/// print the name themselves.
std::string without_file(const std::string& message, const std::string& file);

/// A report.json as it stands, and the report in it.
struct ReadReport {
  std::string text;
  reports::Report report;
};
/// Reads a report. Writes a warning to `err` for each field that this program does not know. Throws
/// as report_text() does, and ReadError if the text is no report.
ReadReport read_report(const std::string& argument, std::ostream& err);

/// Reads a report. If that fails, the submission has the reason in place of the report. Writes a
/// warning to `err` for each field that this program does not know.
reports::Submission read_submission(const std::string& argument, std::ostream& err);

/// Returns the error for a report that can't be read: UNSUPPORTED if a newer program wrote it, and
/// TORN_FILE otherwise.
Error unreadable_report(const reports::Submission& submission);

/// Returns the reports that the arguments name. A folder without a report.json stands for those of
/// its subfolders. Throws NOT_FOUND, with the option if there is one, if there are none.
std::vector<std::string> reports_named(const std::vector<std::string>& arguments,
                                       const std::string& option = {});

}  // namespace reprise::cli
