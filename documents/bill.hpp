#pragma once
// Bills: items in whole micro-dollars, whose sum is the total exactly.

#include <string>
#include <vector>

#include "common/units.hpp"
#include "documents/walk.hpp"

namespace ganymede::documents {

/// One line of a bill. `usd` is exact; `quantity` explains it, and may be rounded to a double.
struct BillItem {
  std::string item;                                     ///< what is charged, for example "instance-hours"
  std::string pool;                                     ///< for which pool: "p3.8xlarge us-east-1 on-demand"
  double quantity = 0;                                  ///< in units
  std::string unit;                                     ///< "h"
  MicroUsd unit_price;                                  ///< for one unit
  MicroUsd usd;                                         ///< the amount charged
  std::string provider = {}, region = {}, market = {};  ///< empty where they do not apply
  MicroUsd list_price = {};                             ///< for one unit, before discounts; 0: the same as `unit_price`
  bool operator==(const BillItem&) const = default;
};

/// An item as documents list it that name neither providers nor list prices.
struct PlainBillItem : BillItem {};

struct Bill {
  std::vector<BillItem> items;

  MicroUsd total() const;  ///< throws Failure if the sum does not fit into 64 bits
};

void describe(Walk& walk, BillItem& item);
void describe(Walk& walk, PlainBillItem& item);

}  // namespace ganymede::documents
