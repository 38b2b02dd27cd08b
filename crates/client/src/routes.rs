//! The route cache: filled on demand, fetched again every 30 s or when a send fails.
//!
//! A topic that no name server knows is sent by the route of TBW102, whose brokers create it. A cached route outlives a
//! name server that has forgotten it for a while, as after a restart. Java: `MQClientInstance.topicRouteTable`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use cometmq_wire::body::TopicRouteData;
use cometmq_wire::names;

use crate::route::Route;
use crate::{Client, Error};

/// How long a topic must be gone before its route is forgotten.
const GONE_AFTER: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(crate) struct Routes {
    table: Mutex<HashMap<String, Arc<Route>>>,
    /// Held while fetching on demand, so that concurrent callers ask once.
    fetching: tokio::sync::Mutex<()>,
}

impl Routes {
    fn table(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Route>>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, topic: &str) -> Option<Arc<Route>> {
        self.table().get(topic).cloned()
    }

    fn find_own(&self, topic: &str) -> Option<Arc<Route>> {
        self.find(topic).filter(|r| !r.is_template)
    }

    pub(crate) fn all(&self) -> Vec<(String, Arc<Route>)> {
        self.table().iter().map(|(topic, route)| (topic.clone(), route.clone())).collect()
    }

    /// Stores what was fetched; says whether that is news.
    fn store(&self, topic: &str, data: TopicRouteData) -> (Arc<Route>, bool) {
        let mut table = self.table();
        let before = table.get(topic);
        if let Some(same) = before.filter(|r| !r.is_template && *r.data() == data) {
            *same.gone_since.lock().unwrap_or_else(PoisonError::into_inner) = None;
            return (same.clone(), false);
        }
        let route = Arc::new(Route::new(topic, data, before.map(Arc::as_ref)));
        table.insert(topic.to_string(), route.clone());
        (route, true)
    }
}

impl Client {
    /// The route of a topic that exists: from the cache, or else from a name server.
    pub async fn route(&self, topic: &str) -> Result<Arc<Route>, Error> {
        if let Some(route) = self.routes().find_own(topic) {
            return Ok(route);
        }
        let _one = self.routes().fetching.lock().await;
        if let Some(route) = self.routes().find_own(topic) {
            return Ok(route);
        }
        let data = self.fetch_route(topic).await?;
        Ok(self.routes().store(topic, data).0)
    }

    /// The route to send by: the topic's own, or for an unknown topic that of the template.
    pub(crate) async fn publish_route(&self, topic: &str) -> Result<Arc<Route>, Error> {
        if let Some(route) = self.routes().find(topic) {
            return Ok(route);
        }
        let unknown = match self.route(topic).await {
            Err(error @ Error::NoRoute { .. }) => error,
            other => return other,
        };
        let Ok(template) = self.fetch_route(names::AUTO_CREATE_TOPIC).await else { return Err(unknown) };
        let route = Arc::new(Route::from_template(topic, template));
        // Somebody else's real route wins.
        Ok(self.routes().table().entry(topic.to_string()).or_insert(route).clone())
    }

    /// Fetches all known routes again. A change wakes the consumers.
    pub(crate) async fn refresh_routes(&self) {
        let mut changed = false;
        for (topic, route) in self.routes().all() {
            match self.fetch_route(&topic).await {
                Ok(data) => changed |= self.routes().store(&topic, data).1,
                Err(Error::NoRoute { .. }) => {
                    let since = route
                        .gone_since
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .get_or_insert(Instant::now())
                        .elapsed();
                    if since >= GONE_AFTER {
                        tracing::info!(topic, "no name server knows this topic any more");
                        self.routes().table().remove(&topic);
                    }
                }
                Err(error) => tracing::warn!(%error, "cannot refresh a route"),
            }
        }
        if changed {
            self.groups().wake_all();
        }
    }
}
