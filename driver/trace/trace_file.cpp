#include "driver/trace/trace_file.hpp"

#include <filesystem>
#include <utility>

#include "core/base/bytes.hpp"
#include "reprise/error.hpp"

namespace reprise::driver {
namespace {

std::string folder_of_trace(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

TraceForm trace_form_of(const std::string& path) {
  return path.ends_with(".txt") ? TraceForm::kLines : TraceForm::kPackets;
}

TraceFile::TraceFile(const std::string& path)
    : name_(std::filesystem::path(path).filename().string()),
      beside_(name_ + ".tmp"),
      store_(folder_of_trace(path)) {
  // A rename would replace a device as well.
  const bool taken = std::filesystem::exists(path) && !std::filesystem::is_regular_file(path);
  if (name_.empty() || taken) {
    throw Error(Code::kUsage, "the trace needs the name of a file, but this is something else",
                {.file = path});
  }
  try {
    file_ = store_.create(beside_);
  } catch (const Error& error) {
    throw Error(error.code(), "the trace can't be written: " + error.message(), {.file = path});
  }
}

TraceFile::~TraceFile() {
  if (file_ == nullptr) return;
  try {
    file_.reset();
    store_.remove(beside_);
  } catch (const Error&) {
    // The error that ended the run is more important than this file.
  }
}

void TraceFile::add(std::size_t number, std::string packets) {
  const std::lock_guard lock(mutex_);
  waiting_.emplace(number, std::move(packets));
  while (!waiting_.empty() && waiting_.begin()->first == next_) {
    const auto ready = waiting_.extract(waiting_.begin());
    file_->write_at(written_, as_bytes(ready.mapped()));
    written_ += ready.mapped().size();
    ++next_;
  }
}

void TraceFile::finish() {
  file_->sync();
  file_->close();
  store_.publish({beside_, name_});
  store_.sync_directory("");
  file_.reset();
}

}  // namespace reprise::driver
