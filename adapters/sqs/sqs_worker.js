// @ts-self-types="./sqs_worker.d.ts"
import { serve } from "../../workers/serve.ts";

serve(() => import("./transport.ts"));
