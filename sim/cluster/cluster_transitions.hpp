#pragma once
// Transitions in the life of a cluster: functions of its context and its state, which they change. They have no
// other effects.

#include "sim/cluster/cluster_state.hpp"

namespace ganymede::sim {

// cluster_jobs.cpp

/// Jobs whose time has come arrive; those that wait for no other become ready. Throws Infeasible if one can run in no
/// pool.
void arrive_due(const ClusterContext& context, ClusterState& state);
/// Jobs that end now give their GPUs back, and those that waited for them become ready.
void finish_due(const ClusterContext& context, ClusterState& state);
/// Throws Infeasible if the job cannot run on the GPUs that its placement gives it.
void start_job(const ClusterContext& context, ClusterState& state, const policies::Grant& grant);
/// Takes the GPUs from the job `state.running[index]`. Unless it is done, it has saved its state.
void stop_job(const ClusterContext& context, ClusterState& state, std::size_t index, bool done);
/// Puts a waiting job beside one that runs on a GPU. `estimated`: how fast the two are was not measured.
void pair_up(const ClusterContext& context, ClusterState& state, RunningJob& host, std::size_t guest, bool estimated);
/// Adds to the records the GPUs that the job has held up to now.
void count_held(const ClusterContext& context, ClusterState& state, RunningJob& running);
/// Notes in the record how many jobs wait and run, if that has changed.
void note_queue(const ClusterContext& context, ClusterState& state);

// cluster_decisions.cpp

/// Puts the job where it belongs among those that the scheduler sees wait.
void enqueue(const ClusterContext& context, ClusterState& state, std::size_t job);
void dequeue(ClusterState& state, std::size_t job);
/// Asks the scheduler. Throws Failure for a schedule that the cluster cannot follow.
policies::JobSchedule decide(const ClusterContext& context, ClusterState& state);
void follow(const ClusterContext& context, ClusterState& state, const policies::JobSchedule& schedule);
/// Puts waiting jobs of one GPU beside running ones, each where the two are fastest together.
void pack(const ClusterContext& context, ClusterState& state);
/// Says which jobs share no GPU although they might, and for which the speeds on a shared one are estimated.
void warn_of_packing(const ClusterContext& context);

// cluster_rates.cpp

/// Gives each job the pace that the others leave it: a job whose pace changes begins another segment.
void update_paces(const ClusterContext& context, ClusterState& state);
/// Ends the segment of the job, if one is under way, and counts what was done in it.
void end_segment(const ClusterContext& context, ClusterState& state, const RunningJob& running);
/// The job's work up to now.
double work_done(const ClusterContext& context, ClusterState& state, const RunningJob& running);
/// The caches of the nodes of jobs that have read their whole dataset by now serve it from now on.
void end_reading(const ClusterContext& context, ClusterState& state);
TalkingJob talk_of(const ClusterContext& context, const RunningJob& running);

}  // namespace ganymede::sim
