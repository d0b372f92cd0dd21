#pragma once
// Scans a file, or all files below a directory, on all threads.

#include <optional>
#include <string>
#include <vector>

#include "core/checkpoint/tensor_survey.hpp"
#include "core/scan/file_scan.hpp"
#include "reprise/error.hpp"
#include "reprise/store.hpp"

namespace reprise {

struct ScannedFile {
  std::string file;  ///< path as the user knows it
  FileScan scan;
  std::optional<Error> unread;  ///< why the file can't be read
};

struct TreeScan {
  std::vector<ScannedFile> files;          ///< in the order of the listing
  std::vector<std::string> not_looked_at;  ///< links to directories, and what is nested too deeply
};

/// Scans the file at `path`, or each file below it; links to files are followed. Each thread holds
/// one record in memory. A file or
/// directory that can't be read is in the result. Throws NOT_FOUND if nothing is
/// at `path`.
TreeScan scan_tree(Store& store, const std::string& path, const SurveyPorts& ports);

}  // namespace reprise
