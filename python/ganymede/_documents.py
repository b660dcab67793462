"""The types of the documents that the program prints; tools/document_types.py writes this file."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict


class ResultRun(TypedDict, total=False):
    platform: str
    market: str
    allocation: str
    gpu: str
    gpus: int
    scheme: str
    mode: str
    placement: str
    policy: str


class ResultLaunchPool(TypedDict, total=False):
    provider: str
    region: str
    zone: str
    market: str
    instance: str
    nodes: int
    gpu: str
    gpus_per_node: int


class ResultLaunch(TypedDict, total=False):
    model: str
    precision: str
    dataset: str
    batch_per_gpu: int
    global_batch: int
    pools: List[ResultLaunchPool]


class ResultQualityImages(TypedDict):
    median: float
    interval: List[float]


class ResultQuality(TypedDict):
    fid: float
    images: ResultQualityImages
    never: float


class ResultTime(TypedDict, total=False):
    total_s: float
    steps: int
    images: int
    step_mean_s: float
    interval_s: List[float]
    sampling_interval_s: List[float]
    confidence: float
    fidelity: str
    steps_simulated: int


class ResultUtilization(TypedDict, total=False):
    gpu_busy: float
    gpu_flops: float
    cpu: Optional[float]
    network: float
    cpu_reserved: Optional[float]
    memory_reserved: Optional[float]
    memory_bytes: float


class ResultCostItem(TypedDict, total=False):
    item: str
    pool: str
    quantity: float
    unit: str
    unit_price_usd: str
    unit_price_usd_number: float
    list_price_usd: str
    list_price_usd_number: float
    usd: str
    usd_number: float
    provider: str
    region: str
    market: str


class ResultCostInstanceHoursByUse(TypedDict, total=False):
    compute: str
    exposed_communication: str
    straggler: str
    input_stall: str
    checkpoint: str
    evaluation: str
    provisioning: str
    lost: str
    idle: str
    idle_tail: str
    minimum_and_rounding: str


class ResultCost(TypedDict, total=False):
    total_usd: str
    interval_usd: List[str]
    items: List[ResultCostItem]
    instance_hours_by_use: ResultCostInstanceHoursByUse
    instance_hours_by_use_number: Dict[str, float]


class ResultEnergy(TypedDict, total=False):
    kwh: float
    kg_co2e: float
    kwh_interval: List[float]
    kg_co2e_interval: List[float]
    gpu_kwh: float
    host_kwh: float
    grid: str


class ResultEvent(TypedDict, total=False):
    at_s: float
    event: str
    pool: str
    nodes: int
    detail: str
    times: int


class ResultStepSpans(TypedDict):
    columns: List[str]
    kinds: List[str]
    names: List[str]
    rows: List[List[Any]]


class ResultPool(TypedDict, total=False):
    pool: str
    gpu: str
    node_hours: float
    gpu_seconds: Dict[str, float]
    usd: str
    usd_number: float
    owned: str


class ResultLife(TypedDict, total=False):
    losses: int
    checkpoints: int
    lost_training_s: float
    staleness: Optional[float]


class ResultGoals(TypedDict, total=False):
    deadline_s: Optional[float]
    budget_usd: Optional[str]
    budget_usd_number: Optional[float]
    met: bool


class ResultSeedsTimeS(TypedDict, total=False):
    median: Optional[float]
    p5: Optional[float]
    p95: Optional[float]
    interval: List[Optional[float]]


class ResultSeedsUsd(TypedDict, total=False):
    median: Optional[float]
    p5: Optional[float]
    p95: Optional[float]
    interval: List[Optional[float]]


class ResultSeeds(TypedDict, total=False):
    first: int
    count: int
    finished: int
    met: int
    losses_mean: float
    time_s: ResultSeedsTimeS
    usd: ResultSeedsUsd


class ResultProvenance(TypedDict, total=False):
    tool: str
    scenario_hash: str
    seed: int
    inputs: str
    risk: str
    steps: str
    fabric: str
    software: str
    prices_as_of: str
    warnings: List[str]
    scenario: Dict[str, Any]
    files: Dict[str, str]


class ResultDocument(TypedDict, total=False):
    schema: str
    run: ResultRun
    launch: ResultLaunch
    quality: ResultQuality
    time: ResultTime
    utilization: ResultUtilization
    gpu_seconds: Dict[str, float]
    gpu_hours: float
    cost: ResultCost
    energy: Optional[ResultEnergy]
    events: List[ResultEvent]
    step_spans: ResultStepSpans
    pools: List[ResultPool]
    life: ResultLife
    goals: ResultGoals
    seeds: ResultSeeds
    provenance: ResultProvenance


class ClusterResultSummary(TypedDict, total=False):
    jobs: int
    gpus: int
    begin_s: float
    total_s: float
    completion_s: Dict[str, float]
    wait_s: Dict[str, float]
    slowdown: Dict[str, float]
    held: float
    gpu_busy: float
    jain_fairness: float
    preemptions: int
    missed_deadlines: int


class ClusterResultJobStay(TypedDict, total=False):
    from_s: float
    to_s: float
    pool: str
    gpus: int
    on: str
    packed: bool
    estimated: bool


class ClusterResultJob(TypedDict, total=False):
    job: str
    owner: str
    workload: str
    gpus: int
    arrival_s: float
    ready_s: float
    start_s: float
    end_s: float
    wait_s: float
    run_s: float
    run_low_s: float
    run_high_s: float
    alone_s: float
    slowdown: float
    gpu_hours: float
    preemptions: int
    restart_s: float
    priority: int
    deadline_s: float
    in_time: bool
    stays: List[ClusterResultJobStay]


class ClusterResultOwner(TypedDict, total=False):
    owner: Optional[str]
    jobs: int
    gpu_hours: Optional[float]
    slowdown_mean: Optional[float]
    usd: str
    usd_number: float


class ClusterResultQueue(TypedDict):
    columns: List[str]
    rows: List[List[Any]]


class ClusterResultPool(TypedDict, total=False):
    pool: str
    nodes: int
    gpus_per_node: int
    gpu: str
    held: float
    gpu_busy: float


class ClusterResultCostItem(TypedDict, total=False):
    item: str
    pool: str
    quantity: float
    unit: str
    unit_price_usd: str
    unit_price_usd_number: float
    usd: str
    usd_number: float


class ClusterResultCost(TypedDict):
    total_usd: str
    items: List[ClusterResultCostItem]


class ClusterResultEnergy(TypedDict):
    kwh: float
    kg_co2e: float


class ClusterResultProvenance(TypedDict, total=False):
    tool: str
    cluster_hash: str
    seed: int
    fidelity: str
    messages_simulated: float
    events: int
    decisions: int
    contending_groups: int
    approximate_groups: int
    approximate_steps_within: float
    warnings: List[str]


class ClusterResultDocument(TypedDict):
    schema: str
    scheduler: str
    placement: str
    summary: ClusterResultSummary
    jobs: List[ClusterResultJob]
    owners: List[ClusterResultOwner]
    queue: ClusterResultQueue
    pools: List[ClusterResultPool]
    cost: ClusterResultCost
    energy: Optional[ClusterResultEnergy]
    provenance: ClusterResultProvenance


class RecipeTrainingRegularizer(TypedDict, total=False):
    name: str
    network: str
    every: int
    share: float


class RecipeTrainingBatchRule(TypedDict):
    side: int
    per_gpu: int
    most: int


class RecipeTrainingPause(TypedDict, total=False):
    name: str
    every_kimg: float
    seconds: float


class RecipeTraining(TypedDict, total=False):
    image: int
    precision: str
    settings: Dict[str, Any]
    regularizers: List[RecipeTrainingRegularizer]
    optimizer: str
    moving_average: bool
    augmentation: str
    batch: int
    batch_per_gpu: int
    batch_rule: RecipeTrainingBatchRule
    gradients: str
    pauses: List[RecipeTrainingPause]
    kimg: float
    epochs: int
    steps: int


class RecipeConfig(TypedDict, total=False):
    name: str
    image_from: int
    image_to: int
    training: Dict[str, Any]


class RecipeMeasured(TypedDict, total=False):
    gpu: str
    by: str
    source: str
    rows: List[List[Any]]
    peaks: List[List[Any]]


class RecipeDocument(TypedDict, total=False):
    schema: str
    name: str
    about: str
    version: int
    sources: Dict[str, str]
    layers: Dict[str, Any]
    training: RecipeTraining
    configs: List[RecipeConfig]
    measured: List[RecipeMeasured]


class DiffSide(TypedDict):
    file: str
    subject: str


class DiffKnown(TypedDict, total=False):
    value: Optional[float]
    interval: Optional[List[float]]


class DiffQuantity(TypedDict, total=False):
    what: str
    unit: str
    before: DiffKnown
    after: DiffKnown
    change: Optional[float]
    relative: Optional[float]
    within_error: Optional[bool]


class DiffInput(TypedDict, total=False):
    kind: str
    pointer: str
    name: str
    before: Any
    after: Any


class DiffLimit(TypedDict, total=False):
    what: str
    most: float
    held: bool


class DiffDocument(TypedDict, total=False):
    schema: str
    of: str
    before: DiffSide
    after: DiffSide
    over_seeds: bool
    quantities: List[DiffQuantity]
    inputs_recorded: bool
    inputs: List[DiffInput]
    limits: List[DiffLimit]
    held: bool


class ForecastMeasure(TypedDict):
    median: float
    interval: List[float]


class ForecastQualityCurve(TypedDict):
    images: float
    usd: float
    best_fid: ForecastMeasure


class ForecastQuality(TypedDict, total=False):
    fid: float
    points: int
    reached: bool
    best_seen: Optional[float]
    probability: float
    images: Optional[ForecastMeasure]
    time_s: Optional[ForecastMeasure]
    usd: Optional[ForecastMeasure]
    curve: List[ForecastQualityCurve]
    notes: List[str]


class ForecastDeadline(TypedDict, total=False):
    seconds: Optional[float]
    probability: Optional[float]
    certainty: float


class ForecastDecisionPool(TypedDict, total=False):
    pool: str
    nodes: int
    nodes_now: int


class ForecastDecision(TypedDict, total=False):
    policy: str
    changes: bool
    pause: bool
    pools: List[ForecastDecisionPool]


class ForecastBillItem(TypedDict, total=False):
    item: str
    unit: str
    planned: float
    paid: float
    planned_usd: str
    paid_usd: str
    difference_usd: float
    why: str


ForecastBill = TypedDict("ForecastBill", {
    "schema": str,
    "plan": str,
    "bill": str,
    "dialect": str,
    "instance": str,
    "nodes": int,
    "from": str,
    "to": str,
    "rows": int,
    "skipped": int,
    "outside": int,
    "planned_usd": str,
    "plan_usd": float,
    "plan_interval_usd": List[float],
    "paid_usd": str,
    "items": List[ForecastBillItem],
    "notes": List[str],
}, total=False)


class ForecastDocument(TypedDict, total=False):
    schema: str
    log: str
    plan: str
    model: str
    instance: str
    nodes: int
    gpus: int
    state: str
    resumptions: int
    cut_lines: int
    steps_done: int
    steps: int
    done_share: float
    last_line_unix_s: float
    setup_s: float
    elapsed_s: float
    paused_s: float
    step_s: Optional[float]
    step_is_measured: bool
    plan_step_s: Optional[float]
    time_s: ForecastMeasure
    plan_time_s: ForecastMeasure
    ends_at: str
    usd_per_hour: float
    spent_usd: float
    usd: ForecastMeasure
    plan_usd: ForecastMeasure
    quality: Optional[ForecastQuality]
    deadline: ForecastDeadline
    decision: Optional[ForecastDecision]
    warnings: List[str]
    bill: ForecastBill


class OwnOrRentMeasure(TypedDict):
    median: float
    interval: List[float]


class OwnOrRentOwnTraining(TypedDict, total=False):
    hours: OwnOrRentMeasure
    usd: float
    electricity_usd: float
    staff_usd: float
    kwh: Optional[float]
    inputs: str


class OwnOrRentOwn(TypedDict, total=False):
    machines: str
    instance: str
    nodes: int
    gpu: str
    gpus: int
    region: str
    capital_usd: float
    life_years: float
    usd_a_year: Dict[str, float]
    training: OwnOrRentOwnTraining
    pue: float
    usd_per_kwh: Optional[str]
    usd_per_kwh_number: Optional[float]


class OwnOrRentOfferPrice(TypedDict, total=False):
    usd_per_hour: str
    usd_per_hour_number: float
    as_of: str
    source: str
    doubt: Optional[str]


class OwnOrRentOfferBreakEven(TypedDict, total=False):
    owning_is_cheaper: str
    trainings_a_year: Optional[float]
    hours_a_year: Optional[float]
    hours_interval: List[Optional[float]]
    utilization: Optional[float]
    months_of_use: Optional[float]


class OwnOrRentOffer(TypedDict, total=False):
    market: str
    offer: Optional[str]
    reason: str
    gpus: int
    gpu: str
    hours: OwnOrRentMeasure
    usd: OwnOrRentMeasure
    committed_usd_a_year: float
    usd_besides: Optional[float]
    price: OwnOrRentOfferPrice
    break_even: OwnOrRentOfferBreakEven


class OwnOrRentProvenance(TypedDict, total=False):
    tool: str
    platform: str
    request: Dict[str, Any]


class OwnOrRentDocument(TypedDict, total=False):
    schema: str
    model: str
    images: Optional[int]
    hours_of_a_year: float
    prices_aged_to: str
    own: OwnOrRentOwn
    offers: List[OwnOrRentOffer]
    warnings: List[str]
    provenance: OwnOrRentProvenance
