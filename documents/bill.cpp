#include "documents/bill.hpp"

#include "common/errors.hpp"

namespace ganymede::documents {

MicroUsd Bill::total() const {
  MicroUsd sum;
  for (const BillItem& item : items) {
    if (__builtin_add_overflow(sum.value, item.usd.value, &sum.value)) throw Failure("the bill's total does not fit");
  }
  return sum;
}

}  // namespace ganymede::documents
