#include "core/checkpoint/piece_reader.hpp"

#include <utility>

#include "core/base/check.hpp"
#include "core/checkpoint/record_checksum.hpp"
#include "core/format/zip/crc32.hpp"
#include "reprise/error.hpp"

namespace reprise {
namespace {

constexpr std::size_t kStagingBytes = std::size_t{4} << 20U;
constexpr std::size_t kSharedStagingBytes = std::size_t{64} << 10U;

}  // namespace

SharedChecksums::SharedChecksums(const Checkpoint& opened, Device& device)
    : checkpoint_(opened), device_(device), staging_(kSharedStagingBytes) {}

std::unique_ptr<TensorReader> SharedChecksums::reader(std::size_t reading,
                                                      const ReaderResources& resources,
                                                      const StoredTensor& tensor) {
  const std::scoped_lock lock(taking_);
  const auto known = open_.find(reading);
  if (known != open_.end()) return std::make_unique<TensorReader>(resources, *known->second);
  auto whole = std::make_unique<TensorReader>(
      ReaderResources{checkpoint_, device_, staging_, &tally_}, tensor);
  auto first = std::make_unique<TensorReader>(resources, *whole);
  open_.emplace(reading, std::move(whole));
  return first;
}

void SharedChecksums::take(std::size_t reading, TensorReader& reader) {
  const std::scoped_lock lock(taking_);
  const auto found = open_.find(reading);
  if (found == open_.end()) return;  // nothing was left to deliver
  found->second->take(reader);
  if (!found->second->complete()) return;
  const auto whole = std::move(found->second);
  open_.erase(found);
  finish(reading, *whole);
}

/// Reads and counts all that can be, also after a failure.
void SharedChecksums::finish(std::size_t reading, TensorReader& whole) {
  const auto try_to = [&](void (TensorReader::*read)()) {
    try {
      (whole.*read)();
    } catch (const Error& error) {
      failures_.try_emplace(reading, error);
    }
  };
  try_to(&TensorReader::judge_taken);
  try_to(&TensorReader::open_rest);
}

ChecksumTally& SharedChecksums::counted() {
  for (const auto& [reading, whole] : open_) finish(reading, *whole);
  open_.clear();
  return tally_;
}

const Error* SharedChecksums::failure_of(std::size_t reading) const {
  const auto found = failures_.find(reading);
  return found == failures_.end() ? nullptr : &found->second;
}

Findings SharedChecksums::judge() {
  CHECK(open_.empty(), open_.size());
  if (!failures_.empty()) throw Error(failures_.begin()->second);
  Findings notes;
  for (const FileIndex file : files_without_small_records(checkpoint_, counted())) {
    count_small_records(checkpoint_, file, tally_);
  }
  for (Finding& finding : tally_.findings()) {
    if (finding.severity == Severity::kError) {
      throw Error(finding.code, finding.message,
                  {.key = finding.key, .file = finding.file, .offset = finding.offset});
    }
    notes.push_back(std::move(finding));
  }
  return notes;
}

PieceReader::PieceReader(const Checkpoint& opened, Device& device)
    : checkpoint_(opened), staging_(kStagingBytes), device_(device) {}

void PieceReader::count_in(SharedChecksums& checksums) {
  checksums_ = &checksums;
  reader_.reset();
}

void PieceReader::read(std::span<const PieceOf> pieces, std::byte* local) {
  for (const PieceOf& one : pieces) read(one.tensor, std::span(&one.piece, 1), local);
}

std::optional<std::uint32_t> PieceReader::fill(std::uint32_t tensor, std::span<const Piece> pieces,
                                               MutableByteSpan out) {
  FilledCrc32 filled(out);
  of(tensor).read(pieces, out.data(), &filled);
  return filled.value();
}

void PieceReader::hand_over() {
  if (checksums_ != nullptr && reader_) checksums_->take(of_, *reader_);
  reader_.reset();
}

TensorReader& PieceReader::of(std::uint32_t tensor) {
  if (reader_ && tensor == of_) return *reader_;
  hand_over();
  const StoredTensor& stored = checkpoint_.catalog().tensors[tensor];
  if (checksums_ == nullptr) {
    reader_ =
        std::make_unique<TensorReader>(ReaderResources{checkpoint_, device_, staging_}, stored);
  } else {
    reader_ =
        checksums_->reader(tensor, {checkpoint_, device_, staging_, &checksums_->tally_}, stored);
  }
  of_ = tensor;
  return *reader_;
}

}  // namespace reprise
