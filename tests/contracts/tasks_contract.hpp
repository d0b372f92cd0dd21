#pragma once
// Contains the tests that every implementation of Tasks must pass. A test file defines a `Lane`
// with the function `void run(function<void(Tasks&)>)`, which passes the lane's Tasks to the
// function.

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <vector>

#include "reprise/ports.hpp"
#include "tests/contracts/error_of.hpp"

namespace reprise::contracts {

template <class Lane>
class TasksContract : public testing::Test {
 protected:
  void run(const std::function<void(Tasks&)>& body) { lane_.run(body); }
  Lane lane_;
};

TYPED_TEST_SUITE_P(TasksContract);

TYPED_TEST_P(TasksContract, wait_returns_after_the_work_is_done) {
  this->run([](Tasks& tasks) {
    std::atomic<int> value = 0;
    const auto task = tasks.start([&value] { value = 7; });
    task->wait();
    EXPECT_EQ(value, 7);
    EXPECT_TRUE(task->done());
    task->wait();  // a second wait is allowed
  });
}

TYPED_TEST_P(TasksContract, what_the_work_threw_is_rethrown_by_wait_once) {
  this->run([](Tasks& tasks) {
    const auto task = tasks.start([] { throw Error(Code::kNoSpace, "full"); });
    EXPECT_EQ(code_of([&] { task->wait(); }), Code::kNoSpace);
    EXPECT_EQ(code_of([&] { task->wait(); }), std::nullopt);
    const auto other = tasks.start([] { throw std::runtime_error("no Error"); });
    EXPECT_THROW(other->wait(), std::runtime_error);
  });
}

TYPED_TEST_P(TasksContract, destroying_an_unfinished_task_waits_for_it) {
  this->run([](Tasks& tasks) {
    auto value = std::make_shared<std::atomic<int>>(0);
    for (int i = 0; i < 20; ++i) tasks.start([value] { ++*value; });
    EXPECT_EQ(*value, 20);
  });
}

TYPED_TEST_P(TasksContract, destroying_a_failed_task_is_silent) {
  this->run([](Tasks& tasks) { tasks.start([] { throw Error(Code::kIo, "nobody asks"); }); });
}

TYPED_TEST_P(TasksContract, many_tasks_are_all_done_in_the_end) {
  this->run([](Tasks& tasks) {
    std::vector<int> squares(100, -1);
    std::vector<std::unique_ptr<Task>> all;
    for (int i = 0; i < 100; ++i) {
      all.push_back(tasks.start([&squares, i] { squares[static_cast<std::size_t>(i)] = i * i; }));
    }
    for (const auto& task : all) task->wait();
    for (int i = 0; i < 100; ++i) EXPECT_EQ(squares[static_cast<std::size_t>(i)], i * i);
  });
}

REGISTER_TYPED_TEST_SUITE_P(TasksContract, wait_returns_after_the_work_is_done,
                            what_the_work_threw_is_rethrown_by_wait_once,
                            destroying_an_unfinished_task_waits_for_it,
                            destroying_a_failed_task_is_silent, many_tasks_are_all_done_in_the_end);

}  // namespace reprise::contracts
