#!/usr/bin/env python3
"""Processor seconds and memory of price lists of 100,000 rows, a list of each kind that `catalog` reads."""

import argparse
import json
import os
import resource
import subprocess
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent


def aws_types(ganymede):
    rows = json.loads(subprocess.run([ganymede, "catalog", "--provider", "aws", "--format", "json"], check=True,
                                     capture_output=True, text=True).stdout)
    return sorted({row["instance"]: float(row["usd_per_hour"]) for row in rows
                   if row["market"] == "on-demand" and row["usd_per_hour"]}.items())


def lists(types, rows):
    """Yields the kind, the catalog that it goes into (or none: --from-skypilot), the name and the text of each list."""
    attributes = {"operatingSystem": "Linux", "tenancy": "Shared", "preInstalledSw": "NA", "capacitystatus": "Used"}
    each = [types[i % len(types)] for i in range(rows)]
    place = [f"made-up-{i // len(types)}" for i in range(rows)]

    def terms(i):
        return {"a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": str(each[i][1])}}}}}

    products = [{**attributes, "instanceType": each[i][0], "regionCode": place[i]} for i in range(rows)]
    yield "AWS, JSON", "aws", "aws.json", json.dumps({
        "publicationDate": "2026-11-01T00:00:00Z",
        "products": {str(i): {"sku": str(i), "attributes": products[i]} for i in range(rows)},
        "terms": {"OnDemand": {str(i): terms(i) for i in range(rows)}}})
    head = ("SKU,TermType,Unit,PricePerUnit,Currency,Instance Type,Tenancy,Operating System,CapacityStatus,"
            "Pre Installed S/W,Region Code\n")
    yield "AWS, CSV", "aws", "aws.csv", '"FormatVersion","v1.0"\n"Publication Date","2026-11-01T00:00:00Z"\n' + head + (
        "".join(f"{i},OnDemand,Hrs,{each[i][1]},USD,{each[i][0]},Shared,Linux,Used,NA,{place[i]}\n" for i in range(rows)))
    yield "get-products", "aws", "products.json", json.dumps({"PriceList": [
        json.dumps({"product": {"attributes": products[i]}, "terms": {"OnDemand": terms(i)},
                    "publicationDate": "2026-11-01"}) for i in range(rows)]})
    yield "spot history", "aws", "spot.json", json.dumps({"SpotPriceHistory": [
        {"ProductDescription": "Linux/UNIX", "AvailabilityZone": f"made-up-{i // len(types)}a",
         "InstanceType": each[i][0], "Timestamp": "2026-11-01T00:00:00+00:00", "SpotPrice": str(each[i][1] / 3)}
        for i in range(rows)]})
    yield "Azure", "azure", "azure.json", json.dumps({"Items": [
        {"retailPrice": 27.2, "armRegionName": place[i], "type": "Consumption", "skuName": "ND96asr A100 v4",
         "unitOfMeasure": "1 Hour", "armSkuName": "Standard_ND96asr_v4", "productName": f"made up {i % 40}",
         "effectiveStartDate": "2021-06-01T00:00:00Z"} for i in range(rows)]})

    def sku(i, description, group, unit, nanos):
        return {"skuId": str(i), "description": description, "category": {"usageType": "OnDemand",
                "resourceGroup": group}, "serviceRegions": [f"made-up-{i // 3 % 50}"], "pricingInfo": [{"pricingExpression": {
                    "usageUnit": unit, "tieredRates": [{"unitPrice": {"units": "0", "nanos": nanos,
                                                                      "currencyCode": "USD"}}]}}]}

    # Fifty regions sell machines with A100; what follows are SKUs of other series there.
    parts = [("A2 Instance Core", "CPU", "h", 30000000), ("A2 Instance Ram", "RAM", "GiBy.h", 4000000),
             ("Nvidia Tesla A100 GPU", "GPU", "h", 900000000)]
    yield "Google's SKUs", "gcp", "skus.json", json.dumps({"skus": [
        sku(i, *(parts[i % 3] if i < 150 else (f"X{i} Instance Core", "CPU", "h", 30000000))) for i in range(rows)]})
    yield "ec2instances.info", "aws", "instances.json", json.dumps([
        {"instance_type": name, "GPU": 0, "pricing": {f"made-up-{k}": {"linux": {"ondemand": str(usd)}}
                                                      for k in range(rows // len(types))}} for name, usd in types])
    yield "Infracost", "aws", "infracost.json", json.dumps({
        "currency": "USD", "timeGenerated": "2026-11-01T00:00:00Z", "projects": [{"breakdown": {"resources": [
            {"costComponents": [{"name": f"Instance usage (Linux/UNIX, on-demand, {each[i][0]})",
                                 "price": str(each[i][1]), "monthlyQuantity": "730"}]} for i in range(rows)]}}]})
    yield "Vast.ai", "vast", "offers.json", json.dumps({"offers": [
        {"gpu_name": "RTX 4090", "num_gpus": 1, "gpu_ram": 24564, "dph_total": 0.3 + (i % 97) / 500,
         "min_bid": 0.15 + (i % 89) / 900, "geolocation": f"Made up, {i % 60}", "reliability2": 0.98} for i in range(rows)]})
    yield "RunPod", "runpod", "runpod.json", json.dumps({"data": {"gpuTypes": [
        {"displayName": "H100 SXM" if i == 0 else f"made up {i}", "memoryInGb": 80, "securePrice": 2.69,
         "communityPrice": 2.2} for i in range(rows)]}})
    yield "ours, CSV", "aws", "ours.csv", "instance,region,market,usd_per_hour,as_of\n" + "".join(
        f"{each[i][0]},{place[i]},on-demand,{each[i][1]},2026-11-01\n" for i in range(rows))
    sky = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
    info = "\"{'Gpus': [{'Name': 'A100', 'MemoryInfo': {'SizeInMiB': 40960}}]}\""
    machines = "".join(f"type{i % 400},A100,8,96,1152,{info},{20 + i % 7},{6 + i % 5},made-up-{i // 400},\n"
                       for i in range(rows))
    yield "SkyPilot, --update", "aws", "vms.csv", sky + "".join(
        f"{each[i][0]},A100,1,8,61,,{each[i][1]},,{place[i]},\n" for i in range(rows))
    yield "SkyPilot, --from-skypilot", "", "vms.csv", sky + machines


def measured(command):
    """Processor seconds and MiB of a command."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        done = subprocess.run(command, capture_output=True, text=True)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = json.dumps([done.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, done.stderr[:300]])
        os.write(write, text.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        code, seconds, memory, err = json.loads(answer.read())
    os.waitpid(child, 0)
    return code, seconds, memory, err


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", default=REPOSITORY / "build/release/bin/ganymede", type=Path)
    parser.add_argument("--rows", default=100_000, type=int)
    options = parser.parse_args()
    print(f"{'list':26} {'seconds':>8} {'MiB':>6}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, catalog, name, text in lists(aws_types(options.program), options.rows):
            path = Path(folder) / "made-up" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            command = [options.program, "catalog", "-o", Path(folder) / "out.json"]
            command += ["--provider", catalog, "--update", path] if catalog else ["--from-skypilot", path]
            if kind == "Infracost":
                command += ["--region", "us-east-1"]
            code, seconds, memory, err = measured([str(part) for part in command])
            print(f"{kind:26} {seconds:8.2f} {memory:6.0f}" + (f"  exit code {code}: {err}" if code else ""), flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
