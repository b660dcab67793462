#include "platforms/price_collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include "common/dates.hpp"
#include "common/errors.hpp"
#include "common/text.hpp"
#include "common/units.hpp"
#include "platforms/check.hpp"
#include "platforms/sky_gpus.hpp"

namespace ganymede::platforms {

std::optional<double> decimal_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

double PriceCollector::dollars(double amount, const std::string& currency, const std::string& instance,
                               const std::string& where) {
  double rate = 1;
  if (currency != "USD") {
    const auto found = options_.exchange.find(currency);
    if (found == options_.exchange.end())
      throw ConfigError(
          fmt::format("{}: found a price in {}, expected USD; --exchange {}=1.08 says what one {} is worth", where,
                      currency, currency, currency));
    rate = found->second;
  }
  if (currency_.empty()) currency_ = currency;
  if (currency != currency_)
    throw ConfigError(fmt::format("{}: found a price in {}, expected {} as before", where, currency, currency_));
  if (!std::isfinite(amount) || amount < 0)
    throw ConfigError(fmt::format("{}: found a price of {} of {}, expected a number from 0", where, amount, instance));
  const double each = amount * rate / std::max(1, known_.at(instance));
  if (each > kMaxDevicePrice || (amount > 0 && each < kMinDevicePrice))
    throw ConfigError(
        fmt::format("{}: found a price of {} {}/h of {}, expected {:g} to {:g} USD/h for each of its {}", where, amount,
                    currency, instance, kMinDevicePrice, kMaxDevicePrice,
                    known_.at(instance) > 1 ? fmt::format("{} devices", known_.at(instance)) : "devices"));
  return amount * rate;
}

void PriceCollector::add(const std::string& instance, const std::string& where, std::string region, std::string zone,
                         Market market, double per_hour, std::string as_of, const std::string& currency,
                         std::string notes) {
  if (!knows(instance)) return skip(instance);
  const double usd = dollars(per_hour, currency, instance, where);
  if (region.empty()) throw ConfigError(fmt::format("{}: {} has a price and no region", where, instance));
  if (as_of.empty()) {
    list_.undated = true;
    as_of = options_.as_of;
  }
  if (as_of != "undated" && !is_date(as_of))
    throw ConfigError(fmt::format("{}: found the date \"{}\", expected YYYY-MM-DD", where, as_of));
  if (as_of != "undated" && as_of > options_.today)
    throw ConfigError(
        fmt::format("{}: found the date {}, which is in the future (today is {})", where, as_of, options_.today));
  ListedPrice listed;
  listed.instance = instance;
  listed.where = where;
  listed.price.region = std::move(region);
  listed.price.zone = std::move(zone);
  listed.price.market = market;
  listed.price.per_hour = {std::llround(usd * 1e6)};
  listed.price.as_of = std::move(as_of);
  listed.price.origin.source = source_;
  listed.price.origin.notes =
      currency == "USD" ? std::move(notes)
                        : fmt::format("{:g} {} at {:g} USD", per_hour, currency, options_.exchange.at(currency));
  const Key key{listed.instance, listed.price.region, listed.price.zone, market};
  const auto [place, fresh] = index_.emplace(key, list_.prices.size());
  if (fresh) return list_.prices.push_back(std::move(listed));
  const ListedPrice& first = list_.prices[place->second];
  if (first.price.per_hour != listed.price.per_hour)
    throw ConfigError(fmt::format("{}: a second {} price of {} in {}: {} here, {} at {}", where, to_string(market),
                                  instance, listed.price.zone.empty() ? listed.price.region : listed.price.zone,
                                  to_string(listed.price.per_hour), to_string(first.price.per_hour), first.where));
}

void PriceCollector::add_rented(const std::string& instance, const std::string& where, std::string region,
                                std::string zone, Market market, double per_hour, std::string as_of,
                                const std::string& currency, std::string notes) {
  if (per_hour == 0) return;  // lists write it for what cannot be had
  add(instance, where, std::move(region), std::move(zone), market, per_hour, std::move(as_of), currency,
      std::move(notes));
}

void PriceCollector::add_zone(const std::string& instance, const std::string& region, const std::string& zone,
                              ZonePrice price) {
  if (!knows(instance)) return skip(instance);
  const auto [place, fresh] = zones_.try_emplace({instance, region, zone}, price);
  if (fresh || price.since < place->second.since) return;
  if (price.since == place->second.since && !price.since.empty() && price.per_hour != place->second.per_hour)
    throw ConfigError(fmt::format("{}: a second spot price of {} in {} at {}: {:g} here, {:g} at {}", price.where,
                                  instance, zone, price.since, price.per_hour, place->second.per_hour,
                                  place->second.where));
  place->second = std::move(price);
}

void PriceCollector::take_zones() {
  std::map<std::pair<std::string, std::string>, const ZonePrice*> lowest;
  std::string as_of;  // a price that changed earlier still held when the newest one changed
  for (const auto& [at, price] : zones_) as_of = std::max(as_of, price.since.substr(0, 10));
  for (const auto& [at, price] : zones_) {
    const auto& [instance, region, zone] = at;
    add_rented(instance, price.where, region, zone, Market::spot, price.per_hour, as_of);
    const ZonePrice*& least = lowest.try_emplace({instance, region}, &price).first->second;
    if (price.per_hour > 0 && (least->per_hour == 0 || price.per_hour < least->per_hour)) least = &price;
  }
  for (const auto& [of, price] : lowest)
    add_rented(of.first, price->where, of.second, "", Market::spot, price->per_hour, as_of);
}

void PriceCollector::end_page(const std::string& next) {
  if (next.empty())
    ++last_pages_;
  else
    next_pages_.push_back(next);
}

namespace {

/// The number behind "$skip=" in the address of a page.
std::optional<long> skipped(const std::string& page) {
  const std::size_t at = page.find("skip=");
  long number = 0;
  if (at == std::string::npos ||
      std::from_chars(page.data() + at + 5, page.data() + page.size(), number).ec != std::errc() || number <= 0)
    return std::nullopt;
  return number;
}

/// The pages that others name as their next ones are each so many prices behind the one before: says which is missing.
std::string missing_page(const std::vector<std::string>& pages) {
  constexpr long kPageSizes[] = {100, 1000};  // of Azure's service, before 2023 and since
  std::set<long> behind;
  for (const std::string& page : pages)
    if (const auto skip = skipped(page)) behind.insert(*skip);
  if (behind.empty()) return "";
  long step = *behind.begin(), before = 0;
  for (const long skip : behind) {
    step = std::min(step, skip - before);
    before = skip;
  }
  if (behind.size() == 1 && std::count(std::begin(kPageSizes), std::end(kPageSizes), step) == 0) step = kPageSizes[1];
  long expected = step;
  for (const long skip : behind) {
    if (skip != expected) return fmt::format("the page that names $skip={} as the next one", expected);
    expected += step;
  }
  return "";
}

}  // namespace

const Gpu* PriceCollector::sheet(const std::string& name, double memory) const {
  const SkyGpu wanted = gpu_of({"", name, "", 1, false, memory});
  if (wanted.sheet == nullptr) return nullptr;
  const Gpu* found = nullptr;
  for (const Gpu& gpu : platform_.gpus) {
    if (gpu.name == name || gpu.name == wanted.name) return &gpu;
    constexpr double kGib = 1024.0 * 1024 * 1024, kSame = 0.12;  // GB, GiB, and what drivers keep for themselves
    if (find_gpu_sheet(gpu.name) == wanted.sheet && std::abs(wanted.memory_gib * kGib / gpu.memory.si - 1) < kSame)
      found = &gpu;
  }
  return found;
}

void PriceCollector::describe(const std::string& instance, const std::string& where, const std::string& gpu,
                              NewInstance facts) {
  if (knows(instance) || facts.gpus < 1 || gpu.empty()) return;
  const Gpu* found = sheet(gpu, facts.gpu_memory);
  if (found == nullptr) {
    list_.no_sheet.emplace(gpu, fmt::format("{}: {} has {} x {}", where, instance, facts.gpus, gpu));
    return;
  }
  facts.gpu = found->name;
  known_.emplace(instance, facts.gpus);
  list_.fresh.emplace(instance, std::move(facts));
}

PriceList PriceCollector::take() {
  if (!next_pages_.empty()) {
    const std::string missing = last_pages_ == 0 ? next_pages_.back() : missing_page(next_pages_);
    if (!missing.empty())
      throw ConfigError(
          fmt::format("{}: the list is not whole: among its pages is not {}; name all files behind --update, separated "
                      "by commas",
                      source_.substr(source_.find(' ') + 1), missing));
  }
  take_zones();
  std::set<std::string> priced;
  for (const ListedPrice& one : list_.prices) priced.insert(one.instance);
  // A list without any of the catalog's instances is another provider's.
  const bool ours =
      std::any_of(priced.begin(), priced.end(), [&](const auto& one) { return !list_.fresh.contains(one); });
  const auto is_strange = [&](const std::string& instance) {
    const auto found = list_.fresh.find(instance);
    return !ours && found != list_.fresh.end() && !found->second.relative;
  };
  for (const ListedPrice& one : list_.prices)
    if (is_strange(one.instance)) skip(one.instance);
  std::erase_if(list_.prices, [&](const ListedPrice& one) { return is_strange(one.instance); });
  std::erase_if(list_.fresh,
                [&](const auto& one) { return !priced.contains(one.first) || (!ours && !one.second.relative); });
  return std::move(list_);
}

}  // namespace ganymede::platforms
