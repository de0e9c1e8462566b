{{/* What a schema cannot say: everything that is wrong, and what would be right, at once. */}}
{{- define "oncegate.checks" -}}
{{- $wrong := list -}}
{{- $config := .Values.config -}}

{{- if eq $config.ledger.kind "embedded" -}}
  {{- $embedded := $config.ledger.embedded | default dict -}}
  {{- if .Values.autoscaling.enabled -}}
    {{- $wrong = append $wrong "autoscaling.enabled: an embedded ledger serves one gateway, and a second one would not know its keys; set it to false, or config.ledger.kind to zookeeper" -}}
  {{- else if gt (int .Values.replicas) 1 -}}
    {{- $wrong = append $wrong (printf "replicas: an embedded ledger serves one gateway, and a second one would not know its keys; set replicas to 1 instead of %d, or config.ledger.kind to zookeeper" (int .Values.replicas)) -}}
  {{- end -}}
  {{- if not .Values.persistence.enabled -}}
    {{- $wrong = append $wrong "persistence.enabled: without a volume an embedded ledger forgets every key with its pod, and retries execute again; set it to true, or config.ledger.kind to zookeeper" -}}
  {{- end -}}
  {{- if eq ($embedded.durability | default "fsync") "memory" -}}
    {{- $wrong = append $wrong "config.ledger.embedded.durability: `memory` forgets every key with its pod, and retries execute again; write `fsync`" -}}
  {{- else if not (hasPrefix (printf "%s/" (include "oncegate.data" .)) ($embedded.path | default "")) -}}
    {{- $wrong = append $wrong (printf "config.ledger.embedded.path: `%s` is not on the volume; write %s/oncegate.redb" ($embedded.path | default "") (include "oncegate.data" .)) -}}
  {{- end -}}
{{- else if .Values.persistence.enabled -}}
  {{- $wrong = append $wrong "persistence.enabled: the volume is for an embedded ledger, and pods could not share it; set it to false, or config.ledger.kind to embedded" -}}
{{- end -}}

{{- range $field := list "listen" "admin" -}}
  {{- $address := index $config $field "address" -}}
  {{- if regexMatch "^(127\\.|\\[::1\\])" $address -}}
    {{- $wrong = append $wrong (printf "config.%s.address: nobody outside of the pod reaches `%s`, not even its probes; write 0.0.0.0:%s" $field $address (include "oncegate.port" $address)) -}}
  {{- end -}}
{{- end -}}
{{- if eq (include "oncegate.port" $config.listen.address) (include "oncegate.port" $config.admin.address) -}}
  {{- $wrong = append $wrong "config.admin.address: the port is that of config.listen.address; write another" -}}
{{- end -}}

{{- /* Here and not in the schema, which would print them. */ -}}
{{- $secrets := dict "config.admin.token" $config.admin.token "config.key_secret" $config.key_secret -}}
{{- range $index, $identity := dig "zookeeper" "auth" list $config.ledger -}}
  {{- $_ := set $secrets (printf "config.ledger.zookeeper.auth[%d].credentials" $index) $identity.credentials -}}
{{- end -}}
{{- range $field, $secret := $secrets -}}
  {{- if and $secret (not (regexMatch "\\$\\{[A-Za-z_][A-Za-z0-9_]*\\}" $secret)) -}}
    {{- $wrong = append $wrong (printf "%s: a ConfigMap is no place for a secret; write ${NAME}, and name its Secret in secretEnvironment.NAME" $field) -}}
  {{- end -}}
{{- end -}}

{{- /* `$${` is a literal, and a name with a default need not be set. */ -}}
{{- $text := include "oncegate.config" . | replace "$${" "" -}}
{{- range $reference := regexFindAll "\\$\\{[A-Za-z0-9_]+\\}" $text -1 | uniq -}}
  {{- $name := $reference | trimPrefix "${" | trimSuffix "}" -}}
  {{- if not (or (eq $name "HOSTNAME") (hasKey $.Values.secretEnvironment $name)) -}}
    {{- $wrong = append $wrong (printf "config: nothing sets `%s`; name its Secret in secretEnvironment.%s" $reference $name) -}}
  {{- end -}}
{{- end -}}

{{- if $wrong -}}
{{- prepend $wrong "these values cannot work:" | join "\n  " | fail -}}
{{- end -}}
{{- end }}
