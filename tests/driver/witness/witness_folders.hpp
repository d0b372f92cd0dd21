#pragma once
// Witness files on disk, as `resume-proof` reads them.

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/contracts/temporary_directory.hpp"
#include "tests/driver/witness/recorded_life.hpp"

namespace reprise::driver {

/// A folder for each run, empty at first.
class WitnessFolders {
 public:
  WitnessFolders() = default;
  explicit WitnessFolders(const RecordedFiles& files) { write(files); }

  /// Writes the uninterrupted run into `a`, and the two lives of the resumed one into `b`.
  void write(const RecordedFiles& files) const {
    write("a", 0, files.control);
    write("b", 0, files.first);
    write("b", 1, files.second);
  }
  /// Writes the files of a life into the folder of its run, one per rank.
  void write(const std::string& run, int life, const std::vector<std::string>& ranks) const {
    std::filesystem::create_directories(path(run));
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      std::ofstream(path(run) + "/life" + std::to_string(life) + "-rank" + std::to_string(rank) +
                    ".jsonl")
          << ranks[rank];
    }
  }
  std::string path(const std::string& run) const { return directory_.path() + "/" + run; }

 private:
  contracts::TemporaryDirectory directory_;
};

}  // namespace reprise::driver
