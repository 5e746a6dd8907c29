// The mean of the last values of something. Memory is had when it is made.
#pragma once

#include <algorithm>
#include <vector>

namespace coppice::core {

class SlidingMean {
 public:
  explicit SlidingMean(int most) : most_(static_cast<std::size_t>(most)) { values_.reserve(most_); }

  // Forgets everything; from now on the last `size` values count, at most as many as it was made for.
  void restart(int size) {
    size_ = std::min(static_cast<std::size_t>(size), most_);
    values_.clear();
    next_ = 0;
  }
  void add(double value) {
    if (values_.size() < size_)
      values_.push_back(value);
    else
      values_[next_] = value, next_ = (next_ + 1) % size_;
  }
  bool full() const { return !values_.empty() && values_.size() == size_; }
  int count() const { return static_cast<int>(values_.size()); }
  double mean() const {  // 0 of nothing
    double sum = 0;
    for (const double value : values_) sum += value;
    return values_.empty() ? 0 : sum / static_cast<double>(values_.size());
  }

 private:
  std::size_t most_, size_ = 0, next_ = 0;
  std::vector<double> values_;
};

}  // namespace coppice::core
