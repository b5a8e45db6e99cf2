//! Many runs at once: one thread for each core, results in the order of the jobs.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Told after each job how many are done, of how many.
pub(crate) type Progress<'a> = dyn Fn(usize, usize) + Sync + 'a;

/// Does all jobs, or gives the error of the first job that has one: those before it were all begun
/// when it failed, and are brought to an end.
pub(crate) fn all<J: Sync, T: Send>(
    jobs: &[J],
    progress: &Progress<'_>,
    work: impl Fn(&J) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, T)>> = Mutex::new(Vec::with_capacity(jobs.len()));
    let failure: Mutex<Option<(usize, anyhow::Error)>> = Mutex::new(None);
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = jobs.get(index) else { return };
                    match work(job) {
                        Ok(result) => {
                            results.lock().expect("no thread panics").push((index, result));
                        }
                        Err(error) => {
                            let mut failure = failure.lock().expect("no thread panics");
                            if failure.as_ref().is_none_or(|(first, _)| index < *first) {
                                *failure = Some((index, error));
                            }
                            next.store(jobs.len(), Ordering::Relaxed);
                        }
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, jobs.len());
                }
            });
        }
    });
    if let Some((_, error)) = failure.into_inner().expect("no thread panics") {
        return Err(error);
    }
    let mut results = results.into_inner().expect("no thread panics");
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_jobs_and_errors_stop_the_work() {
        let jobs: Vec<u32> = (0..100).collect();
        let squares = all(&jobs, &|_, _| {}, |job| Ok(job * job)).unwrap();
        assert_eq!(squares, jobs.iter().map(|job| job * job).collect::<Vec<_>>());
        let error = all(&jobs, &|_, _| {}, |job| {
            anyhow::ensure!(*job < 30, "job {job}");
            Ok(())
        });
        assert_eq!(error.unwrap_err().to_string(), "job 30");
    }
}
