"""Jobs on a Kubernetes cluster, by its API server.

Each replica is a pod, and each attempt a ConfigMap that owns its pods, its headless Service and its Secret.
The ConfigMap has the attempt's key for a name, so that the API server accepts an attempt once.  It holds the
objects themselves, so that any worker completes what a killed one has begun (`objects.claim`).

What the console has seen of the pods is recorded in the attempt's folder, so that an end outlives them.
"""
