#include "documents/bill.hpp"

#include "common/errors.hpp"
#include "documents/forms.hpp"

namespace ganymede::documents {
namespace {

void describe_quantity(Walk& walk, BillItem& item) {
  walk.member("item", item.item, kRequired);
  walk.member("pool", item.pool);
  walk.member("quantity", item.quantity, kRequired);
  walk.member("unit", item.unit, kRequired);
  walk.member("unit_price_usd", item.unit_price, kRequired);
  walk.number_of("unit_price_usd_number", item.unit_price);
}

void describe_charge(Walk& walk, BillItem& item) {
  walk.member("usd", item.usd, kRequired);
  walk.number_of("usd_number", item.usd);
}

}  // namespace

void describe(Walk& walk, BillItem& item) {
  describe_quantity(walk, item);
  MicroUsd list_price = item.list_price.value > 0 ? item.list_price : item.unit_price;
  walk.member("list_price_usd", list_price, {.says = "before discounts"});
  if (list_price != item.unit_price && list_price != item.list_price)
    item.list_price = list_price;  // read, and not written
  walk.number_of("list_price_usd_number", list_price);
  describe_charge(walk, item);
  walk.member("provider", item.provider);
  walk.member("region", item.region);
  walk.member("market", item.market);
}

void describe(Walk& walk, PlainBillItem& item) {
  describe_quantity(walk, item);
  describe_charge(walk, item);
}

MicroUsd Bill::total() const {
  MicroUsd sum;
  for (const BillItem& item : items) {
    if (__builtin_add_overflow(sum.value, item.usd.value, &sum.value)) throw Failure("the bill's total does not fit");
  }
  return sum;
}

}  // namespace ganymede::documents
