"""The output of replicas, copied from their kubelets into the attempts' folders while it is written."""
